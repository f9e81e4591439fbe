#!/usr/bin/env python3
"""Tests of tidy.py: for each check samples that it must let pass and samples that it must report."""

import unittest

import cpp_text
import tidy

LAYERS = "# who\nbase   :\nunits  :\nwire   : base units\nmodel  : units\n"
CMAKE = "add_module(base)\nadd_module(units)\nadd_module(wire LIBS z)\nadd_module(model)\n"
SKELETON = {"src/LAYERS": LAYERS, "CMakeLists.txt": CMAKE}
PACKAGES = "build g++ # compiler\n"
WEB_LAYERS = "base :\napi : base\ncharts : base\npages : base api charts\n"
SLASH = "/"  # keeps the forbidden words of the samples out of this file
LONG = "int f() {\n" + "  g();\n" * 70 + "}\n"
LONG_PYTHON = "def f():\n" + "    g()\n" * 70

# check → (samples without a finding, samples with one). A sample is files on top of SKELETON.
SAMPLES = {
    "layers": (
        [{"src/wire/a.cc": '#include <vector>\n#include "wire/a.h"\n#include "base/result.h"\n'},
         {"src/wire/a.cc": '#include "wire/b_internal.h"\n// #include "model/x.h" is not allowed\n'},
         {"apps/flopsight/main.cc": '#include "model/mfu.h"\n'}],
        [{"src/model/a.cc": '#include "wire/a.h"\n'},
         {"src/model/a_test.cc": '#  include "wire/a.h"\n'},
         {"src/wire/a.cc": '#include "base/json_internal.h"\n'},
         {"src/wire/a.cc": '#include "result.h"\n'},
         {"src/wire/a.cc": '#include "flopsight/main.h"\n'},
         {"src/extra/a.cc": "\n"},
         {"src/LAYERS": "base : units\nunits :\n"},
         {"src/LAYERS": LAYERS + "views :\n"}]),
    "app_layers": (
        [{"apps/flopsight/LAYERS": "serve :\nreport : serve\n",
          "apps/flopsight/report/a.cc": '#include "serve/answer.h"\n#include "wire/a.h"\n#include "env.h"\n',
          "apps/flopsight/run.cc": '#include "report/a.h"\n'}],
        [{"apps/flopsight/LAYERS": "serve :\nreport : serve\n",
          "apps/flopsight/serve/a.cc": '#include "report/a.h"\n'},
         {"apps/flopsight/LAYERS": "report : serve\nserve :\n"},
         {"apps/flopsight/extra/a.cc": "\n"}]),
    "owners": (
        [{"src/wire/gzip.cc": "#include <zlib.h>\n"},
         {"src/views/table.cc": "#include <fmt/format.h>\n"},
         {"src/base/a_test.cc": "#include <gmock/gmock.h>\n"},
         {"src/base/a_bench.cc": "#include <benchmark/benchmark.h>\n#include <rapidjson/reader.h>\n"},
         {"src/base/file.cc": "#include <cstdio>\n#include <sys/stat.h>\n#include <unistd.h>\n"}],
        [{"src/wire/gzip.h": "#include <zlib.h>\n"},
         {"src/wire/exposition.cc": '#include "simdjson.h"\n'},
         {"src/base/json.h": "#include <nlohmann/json.hpp>\n"},
         {"src/base/a.cc": "#include <gtest/gtest.h>\n"},
         {"src/net/a.cc": "#include <boost/asio.hpp>\n"},
         {"src/net/a.cc": "#include <brotli.h>\n"}]),
    "dependencies": (
        [{tidy.PACKAGES: "# text\n" + PACKAGES, tidy.DEPENDENCIES: "| `g++` | compiler |\n"}],
        [{tidy.PACKAGES: PACKAGES, tidy.DEPENDENCIES: "| `cmake` | |\n"},
         {tidy.PACKAGES: PACKAGES}]),
    "web": (
        [{"web/LAYERS": WEB_LAYERS, "web/src/pages/a.ts": 'import { h } from "../base/dom";\nimport * as api from "../api/client";\n// innerHTML\n'},
         {"web/LAYERS": WEB_LAYERS, "web/src/api/client.ts": 'const url = "http://x"; fetch(url);\n'},
         {"web/LAYERS": WEB_LAYERS, "web/src/app.ts": 'import { p } from "./pages/all";\n'},
         {"web/package.json": '{"dependencies": {"uplot": "1"}}', tidy.DEPENDENCIES: "| `uplot` | |\n"}],
        [{"web/LAYERS": WEB_LAYERS, "web/src/base/a.ts": 'import { x } from "../pages/a";\n'},
         {"web/LAYERS": WEB_LAYERS, "web/src/pages/a.ts": 'import {\n  x,\n} from "../app";\n'},
         {"web/LAYERS": WEB_LAYERS, "web/src/other/a.ts": "\n"},
         {"web/LAYERS": WEB_LAYERS, "web/src/pages/a.ts": "element.innerHTML = name;\n"},
         {"web/LAYERS": WEB_LAYERS, "web/src/pages/a.ts": "await fetch(url);\n"},
         {"web/LAYERS": WEB_LAYERS, "web/src/pages/a.ts": 'import uPlot from "uplot";\n'},
         {"web/LAYERS": WEB_LAYERS, "web/src/pages/a.ts": "value.toFixed(2);\n"},
         {"web/LAYERS": WEB_LAYERS, "web/src/pages/a.ts": "const x: any = 1;\n"},
         {"web/package.json": '{"devDependencies": {"left-pad": "1"}}'}]),
    "pure": (
        [{"src/wire/a.cc": '// no getenv here\nconst char* k = "std::cout";\nstd::snprintf(b, 3, "x");\n'},
         {"src/wire/a.cc": "int idle_time(int x);\nauto t = sample.time(0);\nint operand(int);\n"},
         {"src/wire/a_test.cc": "std::ifstream in(path);\n"},
         {"src/base/file.cc": "std::ifstream in(path);\n"}],
        [{"src/wire/a.cc": f"{token};\n"} for token in (
            "auto t = std::chrono::system_clock::now()", "std::time(nullptr)", "time(nullptr)",
            'std::getenv("X")', 'fopen("x", "r")', "std::ifstream in(p)", "std::thread t(f)",
            "std::jthread t(f)", "std::cout << 1", "std::cerr << 1", 'printf("x")', 'std::printf("x")',
            'fprintf(stderr, "x")', "rand()", "std::rand()", "std::random_device d")]),
    "apps_only": (
        [{"src/wire/a.cc": "x.exit(1);\nint on_exit(int);\n"},
         {"src/net/a.cc": "std::jthread worker(f);\n"},
         {"src/base/check.h": "std::abort();\n"},
         {"src/wire/a_test.cc": "_exit(1);\nstd::thread t(f);\n"},
         {"src/net/test_server.h": "_exit(1);\n"},
         {"apps/flopsight/main.cc": "std::exit(argv[0] == nullptr);\n"}],
        [{"src/wire/a.cc": f"{token};\n"} for token in (
            "std::exit(2)", "exit(2)", "_exit(1)", "std::abort()", "f(argv)", "std::signal(SIGPIPE, SIG_IGN)")]
        + [{"src/base/a.cc": "std::thread t(f);\n"}]),
    "mutable_globals": (
        [{"src/wire/a.cc": text} for text in (
            "const int k = 1;\nconstexpr std::array<int, 2> kA = {1, 2};\nusing A = int;\n",
            "int f(int x);\nint A::f(int x) {\n  int y = x;\n  return y == 1;\n}\n",
            "struct A {\n  int x = 0;\n  static A create(int x);\n  static constexpr int k = 1;\n};\n",
            "A::A() = default;\nA& A::operator=(A&&) noexcept = default;\nstatic int f() { return 1; }\n",
            "int f() {\n  static const std::map<int, int> table = make();\n  return table.at(1);\n}\n",
            "inline constexpr int k = 1;\nextern const int j;\nenum class E { a };\nnamespace x {\n}\n")]
        + [{"src/net/a.cc": "int calls = 0;\n"}, {"src/wire/a_test.cc": "int calls = 0;\n"}],
        [{"src/wire/a.cc": text} for text in (
            "int calls = 0;\n", "std::map<std::string, int> cache;\n", "A* a;\n", "int table[256];\n",
            "static int calls = 0;\n", "inline int calls{0};\n", "thread_local A a;\n",
            "int f() {\n  static int calls = 0;\n  return ++calls;\n}\n",
            "struct A {\n  static inline int calls = 0;\n};\n",
            "int f() {\n  static std::vector<int> memo = make(1);\n  return 1;\n}\n")]),
    "personalities": (
        [{"src/wire/a.cc": "#if defined(__clang__)\n#endif\n// #ifdef USE_X\n"}],
        [{"src/wire/a.cc": "#ifdef USE_ZSTD\n#endif\n"},
         {"apps/flopsight/main.cc": "#if defined(FLOPSIGHT_WITH_NVML)\n#endif\n"}]),
    "unbuilt": (
        [{"src/wire/a_fuzz.cc": ""},
         {"apps/flopsight/main_test.cc": ""},
         {"tests/replay.cc": "", "cmake/module.cmake": "add_executable(x tests/replay.cc)"},
         {"tools/tidy_test.py": "", "tests/CMakeLists.txt": "add_test(tools/tidy_test.py)"},
         {"tests/e2e/test_report.py": ""}],
        [{"src/wire/deep/a_test.cc": ""},
         {"tests/a_test.cc": ""},
         {"src/a_test.cc": ""},
         {"apps/flopsight/a_bench.cc": ""},
         {"tools/gen_test.py": ""},
         {"tests/web/test_page.py": ""}]),
    "pragma_once": (
        [{"src/wire/a.h": "// What.\n#pragma once\n"}],
        [{"src/wire/a.h": "// #pragma once\nint a();\n"}]),
    "files": (
        [{"src/wire/a.cc": ""}, {"run": ""}, {".gitignore": ""}, {"tests/corpus/a_fuzz/deadbeef": ""}],
        [{"docs/a.md": "x" * (512 * 1024 + 1)}, {"docs/a.docx": ""}, {"tools/helper": ""},
         {"tests/corpus/a_fuzz/big": "x" * (512 * 1024 + 1)}]),
    "open_ends": (
        [{"src/wire/a.cc": "// TO" "DO(#12): later\n"}, {"tests/golden/a.json": '"TO' 'DO"'}],
        [{"src/wire/a.cc": "// TO" "DO: later\n"}, {"docs/a.md": "FIX" "ME\n"}, {"run": "# XX" "X\n"}]),
    "machine_paths": (
        [{"docs/a.md": "see docs/work/a, https://x.org/home/a, $PWD/work/a and /usr/bin\n"},
         {"src/wire/a.cc": '"../fixtures/a"\n'}],
        [{"docs/a.md": f"see {SLASH}home/me/x\n"}, {"run": f"cd {SLASH}work/main\n"},
         {"tests/golden/a.json": f'"file": "{SLASH}Users/me/x"'}, {"docs/a.md": "[x](..{}shared/spec)".format(SLASH)}]),
    "line_references": (
        [{"docs/a.md": "see `judge` in src/wire/a.cc: it decides\n"},
         {"src/base/a.cc": "// message: a.cc:12\n"}],
        [{"docs/a.md": "see src/wire/a.cc:12\n"}]),
    "links": (
        [{"docs/a.md": "[x](b.md#part) [y](../README.md) [z](https://x.org) [here](#top) [d](../src/)\n",
          "docs/b.md": "", "README.md": "[docs](docs) [a](./docs/a.md)"},
         {"README.md": "```\n[x](nowhere.md)\n```\n"},
         {"README.md": "`src/LAYERS`, `src/`, `src/MODULE/NAME_fuzz.cc`, `src/*.cc`, `docs`\n"}],
        [{"README.md": "see `docs/gone.md`\n"}, {"README.md": "see `src/gone/`\n"},
         {"README.md": "[x](nowhere.md)\n"}, {"docs/a.md": "[x](../docs/b.md)\n"},
         {"docs/a.md": "[x](../../README.md)\n", "README.md": ""}]),
    "tables": (
        [{"docs/a.md": "| a | b |\n| --- | :-: |\n| 1 | 2 |\n\n```\n| x\n```\n"}],
        [{"docs/a.md": "| a |\n| --- |\n\n| 1 |\n"}, {"docs/a.md": "| a |"}]),
    "lengths": (
        [{"src/wire/a.cc": "int a;\n" * 500},
         {"src/wire/a.cc": LONG, tidy.EXCEPTIONS: "src/wire/a.cc:f 80 a table\n"},
         {"src/wire/a.cc": "namespace x {\n" + "int f() {\n  g();\n}\n" * 30 + "}\n"},
         {"src/wire/a.cc": "const int kTable[] = {\n" + "  1,\n" * 90 + "};\n"},
         {tidy.EXCEPTIONS: "# words\n\nraw_double 3 why\n"}],
        [{"src/wire/a.cc": "int a;\n" * 501},
         {"src/wire/a.cc": LONG},
         {"src/wire/a.cc": "struct A {\n  int f() const {\n" + "    g();\n" * 60 + "  }\n};\n"},
         {"src/wire/a_test.cc": "TEST(A, b) {\n" + "  g();\n" * 60 + "}\n"},
         {"tools/a.py": LONG_PYTHON},
         {"src/wire/a.cc": LONG, tidy.EXCEPTIONS: "src/wire/a.cc:f 70 one too few\n"},
         {"src/wire/a.cc": LONG, tidy.EXCEPTIONS: "src/wire/a.cc:f 99 too generous\n"},
         {"src/wire/a.cc": "int a;\n", tidy.EXCEPTIONS: "src/wire/a.cc 600 not needed\n"},
         {tidy.EXCEPTIONS: "src/wire/gone.cc 600 not there\n"},
         {"src/wire/a.cc": LONG, tidy.EXCEPTIONS: "src/wire/a.cc:f 80\n"}]),
    "raw_doubles": (
        [{"src/wire/a.h": "struct A {\n  double power_watts;\n  double value = 0;\n"
                          "  std::optional<double> power_watts_max;\n  double gpu_hours_lost;\n  units::Hertz clock;\n};\n"},
         {"src/wire/a.h": "double mean(double x);\nclass A {\n  double sum_ = 0;\n};\n"},
         {"src/base/json.h": "struct A {\n  double number;\n};\n"},
         {"src/wire/a.h": "struct A {\n  double x;\n};\n", tidy.EXCEPTIONS: "raw_double 1 why\n"}],
        [{"src/wire/a.h": "struct A {\n  double power;\n};\n"},
         {"src/wire/a.h": "struct A {\n  std::vector<double> latency_ms;\n};\n"},
         {"src/wire/a.h": "", tidy.EXCEPTIONS: "raw_double 1 why\n"}]),
}


def tree(sample: dict[str, str]) -> tidy.Tree:
    return tidy.Tree({path: text.encode() for path, text in (SKELETON | sample).items()})


class Checks(unittest.TestCase):
    def test_each_check_has_samples(self):
        self.assertEqual({check.__name__ for check in tidy.CHECKS},
                         {f"check_{name}" for name in SAMPLES})

    def test_good_samples_pass(self):
        for name, (good, _) in SAMPLES.items():
            for sample in good:
                with self.subTest(check=name, sample=sample):
                    findings = list(getattr(tidy, f"check_{name}")(tree(sample)))
                    self.assertEqual([str(finding) for finding in findings], [])

    def test_bad_samples_are_found(self):
        for name, (_, bad) in SAMPLES.items():
            for sample in bad:
                with self.subTest(check=name, sample=sample):
                    self.assertTrue(list(getattr(tidy, f"check_{name}")(tree(sample))))


class Functions(unittest.TestCase):
    def functions(self, text: str) -> list[tuple[str, int, int]]:
        return list(cpp_text.functions_of(cpp_text.strip_code(text)))

    def test_names_and_lengths(self):
        text = ("namespace a {\n\nA::A(int x)\n    : x_(x) {\n  f();\n}\n"
                "TEST(Suite, name) { auto g = [] { return 1; }; }\n}  // namespace a\n")
        self.assertEqual(self.functions(text), [("A", 3, 4), ("Suite.name", 7, 1)])

    def test_braces_in_text_do_not_count(self):
        text = "void f() {\n  s = \"}\";\n  c = '}';\n  // }\n  r = R\"x(}\n)x\";\n}\nint g() { return 1'000; }\n"
        self.assertEqual(self.functions(text), [("f", 1, 7), ("g", 8, 1)])

    def test_a_finding_names_its_line(self):
        finding = next(tidy.check_pure(tree({"src/wire/a.cc": "/* a\n b */\nauto x = R\"(\n)\";\nrand();\n"})))
        self.assertEqual(str(finding), "src/wire/a.cc:5: 'rand(': a pure module may not reach for chance")


if __name__ == "__main__":
    unittest.main()
