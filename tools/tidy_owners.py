"""Who may include which third-party header, for tidy.py."""

import re

# Third-party header → who may include it. One owner means that the library is swapped in one file, and
# its compile time is paid once. Benchmarks may include anything: peers stand beside us there.
OWNERS = {
    r"simdjson\.h": r"src/wire/(?:prometheus_api|json_items)\.cc",
    r"nlohmann/.*": r"src/base/json\.cc",
    r"curl/.*": r"src/net/http_(?:client|transfer)(?:_internal)?\.(?:cc|h)",
    r"zlib\.h": r"src/wire/gzip\.cc",
    r"libdeflate\.h": r"src/wire/crc32\.cc",
    r"xxhash\.h": r"src/wire/(?:exposition|remote_write)\.cc",
    r"protozero/.*": r"src/wire/remote_write(?:_encode)?\.cc",
    r"snappy\.h": r"src/wire/snappy\.cc",
    r"zstd\.h": r"src/wire/zstd\.cc",
    r"sqlite3\.h": r"src/store/sqlite\.cc",
    r"boost/.*": r"src/net/http_server(?:_parser|_connection|_tls)?(?:_internal)?\.(?:cc|h)",
    r"openssl/.*": r"src/net/(?:http_server_tls|password)\.cc",
    r"re2/.*": r"src/base/regex\.cc",
    r"yaml-cpp/.*": r"src/base/yaml\.cc",
    r"tsl/.*": r"(?:src|apps)/.*",
    r"crypt\.h": r"src/net/password\.cc",
    r"CLI/.*": r"apps/flopsight/(?:[a-z]+/)?(?:command_line|[a-z]+_(?:options|arguments))\.cc",
    r"fmt/.*": r"src/views/.*",
    r"cublasLt\.h|cuda\.h": r"src/cuda/declarations_test\.cc",  # read where they are installed; never linked
    r"g(?:test|mock)/.*": r".*_test\.cc|(?:apps/flopsight|src)/(?:[a-z]+/)?test_\w+\.h",
    r"benchmark/.*": r".*_bench\.cc",
}
# The C and POSIX headers in use; anything else with a dot or a slash is a library without an owner.
SYSTEM_HEADER = re.compile(
    r"[a-z_0-9]+|(?:sys|arpa|netinet)/\w+\.h|"
    r"(?:dlfcn|fcntl|glob|malloc|netdb|poll|pthread|sched|signal|spawn|termios|unistd)\.h")
