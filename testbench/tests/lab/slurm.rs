//! A Slurm cluster of one machine, for a test: the daemons `munged`, `slurmctld` and `slurmd`, with all files in one folder.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Programs of the packages `slurm-wlm` and `munge` of Debian.
const PROGRAMS: [&str; 5] = ["munged", "slurmctld", "slurmd", "sinfo", "sbatch"];

/// Folders of daemons that may not be in the search path.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];

/// Pause between two looks at a daemon that starts.
const PAUSE: Duration = Duration::from_millis(100);

/// Looks after which a daemon counts as hung. A slow machine has ten minutes.
const MOST_LOOKS: u32 = 6000;

/// A running cluster. A drop ends its daemons.
pub struct Cluster {
    folder: tempfile::TempDir,
    daemons: Vec<Child>,
}

fn find(program: &str) -> Option<PathBuf> {
    let places = FOLDERS.iter().map(|folder| Path::new(folder).join(program));
    places.into_iter().find(|path| path.is_file())
}

fn output(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Cluster {
    /// Starts a cluster. `None`, with a message, if Slurm or munge is not installed.
    pub fn start() -> Option<Cluster> {
        if let Some(program) = PROGRAMS.into_iter().find(|program| find(program).is_none()) {
            println!("skipped: {program} is not installed (packages slurm-wlm and munge)");
            return None;
        }
        let mut cluster = Cluster {
            folder: tempfile::tempdir().unwrap(),
            daemons: Vec::new(),
        };
        cluster.start_munge();
        fs::write(cluster.path("slurm.conf"), cluster.config()).unwrap();
        let config = cluster.path("slurm.conf").display().to_string();
        cluster.daemon("slurmctld", &["-D", "-f", &config]);
        cluster.daemon("slurmd", &["-D", "-f", &config]);
        cluster.wait_until("the node is idle", |cluster| {
            let nodes = cluster.command("sinfo", &["--noheader", "--format=%T"]);
            String::from_utf8_lossy(&nodes.stdout).trim() == "idle"
        });
        Some(cluster)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start_munge(&mut self) {
        let key = self.path("munge.key");
        fs::write(&key, [7; 64]).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o400)).unwrap();
        let option = |name: &str, file: &str| format!("--{name}={}", self.path(file).display());
        let options = [
            option("socket", "munge.socket"),
            option("key-file", "munge.key"),
            option("pid-file", "munge.pid"),
            option("log-file", "munge.log"),
            option("seed-file", "munge.seed"),
        ];
        let options: Vec<&str> = ["-F", "--force"]
            .into_iter()
            .chain(options.iter().map(String::as_str))
            .collect();
        self.daemon("munged", &options);
        self.wait_until("munged listens", |cluster| cluster.path("munge.socket").exists());
    }

    fn config(&self) -> String {
        let (host, user) = (output("uname", &["-n"]), output("id", &["-un"]));
        let host = host.split('.').next().unwrap_or_default().to_owned();
        let folder = self.folder.path().display();
        let cores = std::thread::available_parallelism().unwrap();
        for name in ["state", "spool"] {
            fs::create_dir(self.path(name)).unwrap();
        }
        format!(
            "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nAuthType=auth/munge\nCredType=cred/munge\n\
             AuthInfo=socket={folder}/munge.socket\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nSlurmctldPort={}\nSlurmdPort={}\n\
             SlurmUser={user}\nSlurmdUser={user}\nStateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool\n\
             SlurmctldPidFile={folder}/slurmctld.pid\nSlurmdPidFile={folder}/slurmd.pid\n\
             SlurmctldLogFile={folder}/slurmctld.log\nSlurmdLogFile={folder}/slurmd.log\nReturnToService=2\n\
             MailProg=/bin/true\nSwitchType=switch/none\nMpiDefault=none\n\
             NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN\n\
             PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP\n",
            free_port(),
            free_port()
        )
    }

    fn daemon(&mut self, program: &str, args: &[&str]) {
        let mut command = Command::new(find(program).unwrap());
        let log = fs::File::create(self.path(&format!("{program}.out"))).unwrap();
        let command = command
            .args(args)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        self.daemons.push(command.spawn().unwrap());
    }

    /// Waits as long as every daemon lives.
    fn wait_until(&mut self, what: &str, is_so: impl Fn(&Cluster) -> bool) {
        for _ in 0..MOST_LOOKS {
            if is_so(self) {
                return;
            }
            let ended = self.daemons.iter_mut().find_map(|daemon| daemon.try_wait().unwrap());
            assert_eq!(ended, None, "a daemon has ended before: {what}\n{}", self.logs());
            sleep(PAUSE);
        }
        panic!("the daemons hang before: {what}\n{}", self.logs());
    }

    /// What the daemons have written.
    fn logs(&self) -> String {
        let names = [
            "munged.out",
            "slurmctld.out",
            "slurmd.out",
            "slurmctld.log",
            "slurmd.log",
        ];
        let logs = names.map(|name| fs::read_to_string(self.path(name)).unwrap_or_default());
        logs.join("\n")
    }

    /// Runs a command of Slurm on this cluster.
    pub fn command(&self, program: &str, args: &[&str]) -> Output {
        let mut command = Command::new(find(program).unwrap());
        command
            .args(args)
            .env("SLURM_CONF", self.path("slurm.conf"))
            .output()
            .unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            // A daemon that has ended is no fault here.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}
