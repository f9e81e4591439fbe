"""`flopsight serve` and everything that can end it: kill -9, SIGTERM, a full disk, damaged files, a second process."""

import contextlib
import glob
import json
import os
import random
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

import servers
from fleet import BINARY
from service import LOAD_END, Service, load, simulate, totals

ROUNDS = 480  # two hours
GPUS = 32
FLEET = ("--scenario", "restart_storm", "--gpus", str(GPUS), "--samples", str(ROUNDS), "--metrics", "10", "--concurrency", "2",
         "--start", str(LOAD_END - 15 * ROUNDS))
QUICK = ("--rollup-slot", "10s", "--rollup-late", "120s")


def whole_run(test: unittest.TestCase) -> dict:
    """Totals of a run that nothing happened to."""
    with Service(*QUICK) as service:
        code, out, err = load(service.url, *FLEET)
        test.assertEqual((code, err), (0, ""), out)
        test.assertEqual(service.stop(), 0, service.log())
        return totals(service.store)


def same(test: unittest.TestCase, found: dict, wanted: dict):
    test.assertEqual(found.keys(), wanted.keys())
    test.assertEqual({key: (found[key], wanted[key]) for key in wanted if found[key] != wanted[key]}, {})


class Crash(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.wanted = whole_run(cls())
        assert len(cls.wanted) > 100, len(cls.wanted)

    def test_killed_at_any_moment_and_sent_again_it_has_the_totals_of_a_run_without_a_crash(self):
        moments = random.Random(20260922)
        with Service(*QUICK) as service:
            journal = os.path.join(service.store, "flopsight.db-wal")

            def journal_size():
                return os.path.getsize(journal) if os.path.exists(journal) else 0

            for attempt in range(10):
                enough = moments.randint(1, GPUS * 10 * ROUNDS // 2)
                sender = simulate(service.url, *FLEET)
                if attempt % 2 == 0:  # between two samples
                    servers.wait_until(lambda: sender.poll() is not None or
                                       service.metric("flopsight_samples_total") > enough, "samples")
                else:  # in the middle of a flush, or at its end
                    size, grown = journal_size(), moments.choice((1, 4096, 20_000, 80_000))
                    servers.wait_until(lambda: sender.poll() is not None or not 0 <= journal_size() - size < grown, "flush")
                service.kill()
                sender.kill()
                sender.communicate()
                service.start()
            load(service.url, *FLEET)  # much of it is too old by now
            self.assertEqual(service.stop(), 0, service.log())
            self.assertNotIn("lost", service.log())
            same(self, totals(service.store), self.wanted)

    def test_sigterm_during_a_load_loses_nothing_that_was_acknowledged(self):
        with Service(*QUICK) as service:
            for _ in range(3):
                sender = simulate(service.url, *FLEET, "--batch", "60")
                servers.wait_until(lambda: sender.poll() is not None or
                                   service.metric("flopsight_samples_total") > 20_000, "samples")
                self.assertEqual(service.stop(), 0, service.log())
                sender.kill()
                sender.communicate()
                service.start()
            # What was not acknowledged is sent again by a client; what was is refused as too old, or a copy.
            load(service.url, *FLEET)
            self.assertEqual(service.stop(), 0, service.log())
            same(self, totals(service.store), self.wanted)


class OneStore(unittest.TestCase):
    def test_the_second_process_on_a_store_is_told_which_is_the_first(self):
        with Service() as service:
            second = subprocess.run([BINARY, "serve", "--listen", "127.0.0.1:0", "--store", service.store],
                                    capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((second.returncode, second.stdout), (2, ""))
            self.assertEqual(second.stderr.count("\n"), 1, second.stderr)
            # setpriv becomes serve, so that its id is the child's.
            self.assertIn(f"process {service.process.pid}", second.stderr)
            self.assertEqual(service.ask("/healthz")[0], 200)

    def test_a_port_that_is_taken_is_one_line(self):
        with Service() as service, tempfile.TemporaryDirectory() as folder:
            second = subprocess.run([BINARY, "serve", "--listen", service.url.removeprefix("http://"), "--store", folder],
                                    capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((second.returncode, second.stdout), (2, ""))
            self.assertEqual(second.stderr.count("\n"), 1, second.stderr)


@contextlib.contextmanager
def small_disk(folder: str):
    """A file system of 24 MB at folder, where mounting is allowed; False otherwise."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", folder], capture_output=True,
                             check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", folder], check=True)


class FullDisk(unittest.TestCase):
    SMALL = ("--scenario", "steady", "--gpus", "8", "--samples", "40", "--metrics", "10", "--start", str(LOAD_END - 600))

    def check_full(self, service: Service):
        """Writes are put off and told why; reads go on."""
        jobs = service.json("/api/v1/jobs", end=str(LOAD_END))["jobs"]
        self.assertTrue(jobs)
        body = b"\x00"  # a message of no series
        status, text, headers = service.ask("/api/v1/write", body, {"Content-Type": "application/x-protobuf"})
        self.assertEqual(status, 503, text)
        self.assertRegex(text, "no room: .*left")
        self.assertEqual(text.count("\n"), 1)
        self.assertGreater(int(headers["Retry-After"]), 0)
        status, text, _ = service.ask("/readyz")
        self.assertEqual(status, 503)
        self.assertRegex(text, "no room")
        self.assertEqual(service.ask("/healthz")[0], 200)
        self.assertEqual(service.json("/api/v1/jobs", end=str(LOAD_END))["jobs"], jobs)
        self.assertEqual(service.metric("flopsight_accepting"), 0)

    def test_below_the_reserve_it_is_503_and_comes_back_by_itself(self):
        with tempfile.TemporaryDirectory() as folder, small_disk(folder) as mounted:
            store = os.path.join(folder, "store")
            with Service(*QUICK, "--limits-disk-free-bytes", "1MiB", store=store) as service:
                code, _, err = load(service.url, *self.SMALL)
                self.assertEqual((code, err), (0, ""))
                service.stop()
                before = totals(store)
                if mounted:
                    service.arguments[-1] = "8MiB"
                    service.start()
                    with open(os.path.join(folder, "ballast"), "wb") as ballast:
                        ballast.write(bytes(18 << 20))
                    self.check_full(service)
                    os.remove(os.path.join(folder, "ballast"))
                else:
                    service.arguments[-1] = "1000TiB"
                    service.start()
                    self.check_full(service)
                    service.stop()
                    service.arguments[-1] = "1MiB"
                    service.start()
                # Nobody writes, and it is ready all the same.
                servers.wait_until(lambda: service.ask("/readyz")[0] == 200, "readiness")
                code, _, err = load(service.url, *self.SMALL)
                self.assertNotIn("503", err)
                self.assertEqual(service.stop(), 0)
                same(self, totals(store), before)

    def test_a_disk_that_is_full_to_the_last_byte_loses_nothing(self):
        with tempfile.TemporaryDirectory() as folder, small_disk(folder) as mounted:
            store = os.path.join(folder, "store")
            with Service(*QUICK, "--limits-disk-free-bytes", "4KiB", store=store) as service:
                if mounted:
                    # Nothing is left once the log has taken a part of the load.
                    free = shutil.disk_usage(folder).free
                    with open(os.path.join(folder, "ballast"), "wb") as ballast:
                        ballast.write(bytes(free - (1 << 20)))
                sender = simulate(service.url, *FLEET)
                if mounted:
                    servers.wait_until(lambda: service.ask("/readyz")[0] == 503, "a full disk")
                    os.remove(os.path.join(folder, "ballast"))
                sender.kill()  # before it gives up a request, which it would never send again
                sender.communicate()
                servers.wait_until(lambda: service.ask("/readyz")[0] == 200, "readiness")
                load(service.url, *FLEET)
                self.assertEqual(service.stop(), 0, service.log())
                same(self, totals(store), whole_run(self))


class Damage(unittest.TestCase):
    FLEET = ("--scenario", "steady", "--gpus", "32", "--samples", "240", "--metrics", "10", "--start", str(LOAD_END - 3600))

    def setUp(self):
        self.service = Service(*QUICK)
        self.addCleanup(self.service.close)
        code, _, err = load(self.service.url, *self.FLEET)
        self.assertEqual((code, err), (0, ""))
        self.database = os.path.join(self.service.store, "flopsight.db")

    def jobs(self) -> list:
        return self.service.json("/api/v1/jobs", end=str(LOAD_END))["jobs"]

    def not_readable(self, path: str = "/api/v1/fleet", **query) -> list:
        return [entry for entry in self.service.json(path, end=str(LOAD_END), **query)["quality"] if entry["code"] == "kept_not_readable"]

    def test_a_database_that_is_none_is_put_aside(self):
        self.assertEqual(self.service.stop(), 0)
        with open(self.database, "r+b") as file:
            file.write(os.urandom(4096))
        for name in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.database + name)
        self.service.start()
        self.service.wait_for_log(r"flopsight\.db.*damaged-1")
        self.assertTrue(os.path.exists(self.database + ".damaged-1"))
        # What the log still has is there again; what comes is taken.
        code, _, err = load(self.service.url, "--scenario", "steady", "--gpus", "8", "--samples", "8", "--metrics", "10")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(self.service.stop(), 0)

    def overwrite(self, path: str, offset: int, data: bytes):
        with open(path, "r+b") as file:
            file.seek(offset)
            file.write(data)

    def database_of_the_stopped_service(self):
        self.assertEqual(self.service.stop(), 0)
        database = contextlib.closing(sqlite3.connect(self.database))
        with database as opened:
            opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return contextlib.closing(sqlite3.connect(self.database))

    def still_works(self):
        code, _, err = load(self.service.url, "--scenario", "steady", "--gpus", "8", "--samples", "8", "--metrics", "10")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(self.service.stop(), 0, self.service.log())

    def test_a_damaged_block_costs_its_own_cells_and_is_named(self):
        with self.database_of_the_stopped_service() as database:
            # One, or several where the machine was slow and the service closed the slots in parts.
            blocks = [row[0] for row in database.execute("SELECT bytes FROM blocks WHERE kind = 0")]
            host, = database.execute("SELECT host FROM gpus WHERE id = 1").fetchone()
        with open(self.database, "rb") as file:
            pages = file.read()
        for block in blocks:
            at = pages.find(block[len(block) // 2:][:40])
            self.assertGreater(at, 0)
            self.overwrite(self.database, at, b"\xff" * 16)
        self.service.start()
        self.assertTrue(self.jobs())
        self.assertEqual(self.service.json("/api/v1/fleet", end=str(LOAD_END), gpus="true")["fleet"]["gpu_count"], 0)
        # Each once, however often it is asked for.
        for _ in range(2):
            entry, = self.not_readable(gpus="true")
            self.assertEqual(entry["count"], len(blocks))
            self.assertRegex(entry["where"], r"block \d+ of 2")
        # Answers to whatever asked for them say so too, and a host whose cells are all in them is no host that there is not.
        job = self.jobs()[0]["id"]
        for path, query in (("/api/v1/gpus", {}), (f"/api/v1/jobs/{job}/gpus", {}), ("/api/v1/gpus/series", {"job": job}),
                            ("/api/v1/gpus/series", {"host": host})):
            self.assertEqual(self.not_readable(path, **query), [entry], (path, query))
        self.assertEqual(self.service.ask("/api/v1/gpus/series", end=str(LOAD_END), host="nowhere")[0], 404)
        self.service.wait_for_log(r"block \d+ of .* cannot be read .*missing from answers")
        self.still_works()

    def test_damaged_cells_of_jobs_are_named_by_each_answer_that_leaves_them_out(self):
        job = servers.wait_until(self.jobs, "jobs")[0]["id"]
        with self.database_of_the_stopped_service() as database:
            database.execute("UPDATE blocks SET bytes = substr(bytes, 1, length(bytes) / 2) || zeroblob(length(bytes) - length(bytes) / 2) WHERE kind > 0")
            database.commit()
        # Each starts anew: what one question met is known to all that follow.
        for path in ("/api/v1/fleet/series", f"/api/v1/jobs/{job}/series", f"/api/v1/jobs/{job}/phases", f"/api/v1/jobs/{job}",
                     f"/api/v1/jobs/{job}/advice", "/api/v1/jobs", "/api/v1/fleet", "/api/v1/waste", "/api/v1/search"):
            self.service.start()
            query = {"q": "NVIDIA"} if path.endswith("search") else {}
            status, body, _ = self.service.ask(path, end=str(LOAD_END), **query)
            self.assertEqual(status, 200, (path, body))
            self.assertEqual([one["code"] for one in json.loads(body)["quality"] if one["code"] == "kept_not_readable"], ["kept_not_readable"], (path, body[:2000]))
            for form in ("markdown", "html") if path.endswith("waste") else ():
                self.assertRegex(self.service.ask(path, end=str(LOAD_END), format=form)[1], r"not readable.*block \d+")
            if path.endswith("waste"):
                self.assertRegex(self.service.ask(path, end=str(LOAD_END), format="message", user="nobody")[1], "no job of that user .*not readable: block")
            self.assertEqual(self.service.stop(), 0, self.service.log())
        self.service.start()
        self.still_works()

    def test_a_damaged_page_is_an_error_in_one_line_or_a_new_store_with_a_note(self):
        with self.database_of_the_stopped_service() as database:
            page, = database.execute("PRAGMA page_size").fetchone()
            roots = dict(database.execute("SELECT name, rootpage FROM sqlite_master WHERE rootpage > 0"))
        shutil.copy(self.database, self.database + ".copy")
        for table in ("jobs", "job_cells", "blocks", "spans"):
            shutil.copy(self.database + ".copy", self.database)
            self.overwrite(self.database, page * (roots[table] - 1), bytes(i * 37 % 256 for i in range(page)))
            self.service.start()
            errors = []
            for path in ("jobs", "fleet", "jobs/1", "jobs/1/gpus", "jobs/1/series"):
                status, body, _ = self.service.ask("/api/v1/" + path, end=str(LOAD_END))
                self.assertIn(status, (200, 404, 500), (table, path, body))
                if status == 500:
                    errors.append(json.loads(body)["error"])
            said = "\n".join(errors) + self.service.log()
            self.assertRegex(said, "malformed|damaged", table)
            self.assertEqual(self.service.ask("/healthz")[0], 200)
            self.still_works()

    def log_of_a_killed_service(self) -> str:
        """Its largest segment. Slots are not closed before the kill, however slow the disk: the log is all that has them."""
        self.service.close()
        self.service = Service("--rollup-slot", "10m", "--rollup-late", "120s")
        self.addCleanup(self.service.close)
        code, _, err = load(self.service.url, *self.FLEET)
        self.assertEqual((code, err), (0, ""))
        self.service.kill()
        return max(glob.glob(os.path.join(self.service.store, "log", "*.log")), key=os.path.getsize)

    def test_damage_at_the_end_of_the_log_is_told_and_what_is_before_it_is_read(self):
        path = self.log_of_a_killed_service()
        self.overwrite(path, os.path.getsize(path) * 2 // 3, b"\xff" * 16)
        self.service.start()
        self.service.wait_for_log(r"\.log: byte \d+: .*; \d+ bytes from there on (are lost|cannot be read)")
        servers.wait_until(self.jobs, "jobs of the first part")
        self.still_works()

    def test_damage_within_the_log_is_told_and_the_rest_is_read(self):
        path = self.log_of_a_killed_service()
        # In the middle of a record, with whole ones after it.
        self.overwrite(path, os.path.getsize(path) // 3, b"\xff" * 16)
        self.service.start()
        self.service.wait_for_log(r"lost: .*\.log: byte \d+: .*; \d+ bytes from there on are lost")
        self.assertTrue(self.not_readable())
        self.assertIn('code="kept_not_readable"', self.service.ask("/metrics")[1])
        servers.wait_until(self.jobs, "jobs of what could be read")
        self.still_works()


if __name__ == "__main__":
    unittest.main()
