"""A real Slurm on one machine for end-to-end tests: Debian's munged, slurmdbd (with a MariaDB), slurmctld and two
slurmd.

Everything runs as the current user, listens on 127.0.0.1 and lives in one temporary folder; the GPUs are fake (gres.conf names
/dev/null), so that what is tested is Slurm's own allocation and its own output, not a driver.

    with SlurmCluster() as slurm:
        job = slurm.submit("sleep 60", "--gres=gpu:a100:2")
        slurm.wait_for_state(job, "RUNNING")
        slurm.run("scontrol", "show", "job", "-d", job)     # its stdout
        slurm.environment                                   # with this, the commands speak to this cluster
"""

import atexit
import contextlib
import getpass
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
from servers import free_port, wait_until

BIN = "/usr/sbin:/usr/bin:/sbin:/bin"


class SlurmCluster:
    """Cluster "testcluster" with the nodes n1 and n2, four GPUs of type a100 each, and one MIG instance (a100_1g.5gb) on n1."""

    name = "testcluster"

    def __init__(self):
        # The sockets' paths are limited to 107 bytes, so not below TMPDIR.
        self.folder = tempfile.mkdtemp(prefix="fs-slurm-", dir="/tmp")
        self._last_complaint = ""
        self._processes: list[tuple[str, subprocess.Popen]] = []
        self.environment = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        self.environment |= {"SLURM_CONF": self._path("slurm.conf"), "PATH": BIN, "TZ": "UTC"}
        for name in ("SLURM_TIME_FORMAT", "SQUEUE_FORMAT", "SACCT_FORMAT"):
            self.environment.pop(name, None)
        atexit.register(self.stop)
        try:
            self._configure()
            self._start_munge()
            self._start_database()
            self._start_slurm()
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()

    def stop(self):
        """Ends the processes and removes the folder. May be called again."""
        atexit.unregister(self.stop)
        for _, process in reversed(self._processes):
            if process.poll() is not None:
                continue
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- use --------------------------------------------------------------------------------------

    def run(self, *command: str, check: bool = True, **more_environment: str) -> str:
        """Standard output of one of Slurm's commands."""
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, cwd=self.folder,
                              env=self.environment | more_environment, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.returncode} {done.stderr}\n{self.log()}")
        return done.stdout

    def submit(self, script: str, *options: str) -> str:
        """The id of a batch job that runs `script` with sh."""
        out = self.run("sbatch", "--parsable", f"--output={self.folder}/job-%j.out", *options, "--wrap", script)
        return out.strip().split(";")[0]

    def state(self, job: str) -> str:
        """As scontrol has it: RUNNING, COMPLETED, … or nothing for a job that it has forgotten."""
        for word in self.run("scontrol", "show", "job", job, check=False).split():
            if word.startswith("JobState="):
                return word.removeprefix("JobState=")
        return ""

    def wait_for_state(self, job: str, state: str):
        wait_until(lambda: self.state(job) == state, f"{state} of job {job}, which is {self.state(job)}")

    def wait_for_accounting(self, job: str, state: str):
        """Until sacct, which is told with some delay, knows as well."""
        def known():
            lines = self.run("sacct", "-n", "-P", "-X", "-j", job, "-o", "State").split("\n")
            return any(line.startswith(state) for line in lines)
        wait_until(known, f"{state} of job {job} in sacct")

    @contextlib.contextmanager
    def rest(self):
        """A slurmrestd on a unix socket, as "unix:PATH"."""
        socket = self._path("rest.socket")
        # As root it refuses to start, for other reasons than a test has.
        check = {"SLURMRESTD_SECURITY": "disable_user_check,disable_unshare_sysv,disable_unshare_files"}
        with open(self._path("slurmrestd.out"), "wb") as out, \
                subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "slurmrestd", "-a", "rest_auth/local", f"unix:{socket}"],
                                 stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=self.folder,
                                 env=self.environment | check) as process:
            try:
                self._until(lambda: os.path.exists(socket), "slurmrestd")
                yield f"unix:{socket}"
            finally:
                process.kill()

    def log(self) -> str:
        """The last lines of every daemon."""
        out = ""
        for name, _ in self._processes:
            try:
                with open(self._path(name + ".log"), encoding="utf-8", errors="replace") as file:
                    out += f"---- {name}\n" + "".join(file.readlines()[-25:])
            except OSError:
                pass
        return out

    # ---- how --------------------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def _write(self, name: str, text: str, mode: int = 0o600):
        with open(self._path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self._path(name), mode)

    def _configure(self):
        user, munge = getpass.getuser(), self._path("munge.socket")
        self.ports = {name: free_port() for name in ("ctld", "n1", "n2", "dbd", "sql")}
        os.makedirs(self._path("state"))
        for i in range(5):
            os.symlink("/dev/null", self._path(f"gpu{i}"))  # slurmd insists on a device
        self._write("gres.conf", f"NodeName=n[1-2] Name=gpu Type=a100 File={self.folder}/gpu[0-3]\n"
                                 f"NodeName=n1 Name=gpu Type=a100_1g.5gb File={self.folder}/gpu4\n")
        self._write("slurmdbd.conf", f"""
AuthType=auth/munge
AuthInfo=socket={munge}
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={self.ports['dbd']}
SlurmUser={user}
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={self.ports['sql']}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
LogFile={self.folder}/slurmdbd.log
PidFile={self.folder}/slurmdbd.pid
""")
        self._configure_slurm(user, munge)

    def _configure_slurm(self, user: str, munge: str):
        self._write("slurm.conf", f"""
ClusterName={self.name}
SlurmctldHost={os.uname().nodename}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={munge}
SlurmctldPort={self.ports['ctld']}
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool-%n
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd-%n.pid
SlurmctldLogFile={self.folder}/slurmctld.log
SlurmdLogFile={self.folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
GresTypes=gpu
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePass={munge}
AccountingStoragePort={self.ports['dbd']}
AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:a100_1g.5gb
JobRequeue=1
KillWait=2
MinJobAge=3600
NodeName=DEFAULT CPUs=8 Boards=1 SocketsPerBoard=1 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=1000
NodeName=n1 NodeHostname={os.uname().nodename} NodeAddr=127.0.0.1 Port={self.ports['n1']} Gres=gpu:a100:4,gpu:a100_1g.5gb:1
NodeName=n2 NodeHostname={os.uname().nodename} NodeAddr=127.0.0.1 Port={self.ports['n2']} Gres=gpu:a100:4
PartitionName=gpu Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
""", 0o644)

    def _spawn(self, name: str, *command: str):
        """A daemon in the foreground, that does not outlive this process."""
        with open(self._path(name + ".out"), "wb") as out:
            process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT, cwd=self.folder, env=self.environment)
        self._processes.append((name, process))

    def _until(self, condition, what: str):
        def check():
            for name, process in self._processes:
                if process.poll() is not None:
                    with open(self._path(name + ".out"), encoding="utf-8", errors="replace") as file:
                        raise RuntimeError(f"{name} ended: {file.read()[-2000:]}\n{self.log()}")
            return condition()
        try:
            return wait_until(check, what)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self._last_complaint}\n{self.log()}") from error

    def _start_munge(self):
        self._path("munge.key")
        with open(self._path("munge.key"), "wb") as file:
            file.write(os.urandom(128))
        os.chmod(self._path("munge.key"), 0o600)
        os.chmod(self.folder, 0o755)
        self._spawn("munged", "munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket",
                    f"--key-file={self.folder}/munge.key", f"--pid-file={self.folder}/munge.pid",
                    f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/munge.seed", "--num-threads=10")
        self._until(lambda: os.path.exists(self._path("munge.socket")), "munge")

    def _start_database(self):
        data, sock = self._path("mysql"), self._path("mysql.socket")
        user = getpass.getuser()
        subprocess.run(["mariadb-install-db", "--no-defaults", f"--user={user}", f"--datadir={data}", "--skip-test-db",
                        "--auth-root-authentication-method=normal"], check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, timeout=120, env=self.environment)
        self._spawn("mariadbd", "mariadbd", "--no-defaults", f"--user={user}", f"--datadir={data}", f"--socket={sock}",
                    f"--pid-file={self.folder}/mysql.pid", "--bind-address=127.0.0.1", f"--port={self.ports['sql']}",
                    "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M")

        def sql(text: str) -> bool:
            return subprocess.run(["mariadb", "--no-defaults", f"--socket={sock}", "--user=root", "-e", text], check=False,
                                  stdin=subprocess.DEVNULL, capture_output=True, env=self.environment).returncode == 0
        self._until(lambda: sql("CREATE USER IF NOT EXISTS slurm@'%' IDENTIFIED BY 'slurm'; "
                                "GRANT ALL ON slurm_acct_db.* TO slurm@'%'"), "MariaDB")
        self._spawn("slurmdbd", "slurmdbd", "-D")
        self._until(lambda: self._answers("sacctmgr", "-i", "list", "cluster"), "slurmdbd")
        if self.name not in self.run("sacctmgr", "-n", "list", "cluster"):
            self.run("sacctmgr", "-i", "add", "cluster", self.name)
        self.run("sacctmgr", "-i", "add", "account", "physics", f"Cluster={self.name}")
        self.run("sacctmgr", "-i", "add", "user", user, "Account=physics")

    def _start_slurm(self):
        self._spawn("slurmctld", "slurmctld", "-D", "-i")
        for node in ("n1", "n2"):
            self._spawn("slurmd-" + node, "slurmd", "-D", "-N", node)
        self._until(lambda: self.run("sinfo", "-h", "-o", "%t %D", check=False).strip() == "idle 2", "idle nodes")

    def _answers(self, *command: str) -> bool:
        done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                              env=self.environment)
        self._last_complaint = done.stderr
        return done.returncode == 0
