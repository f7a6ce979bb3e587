//! Large pages of memory for the machine's state.
//!
//! The state of a full chip is some 80 MB, and the clock walks through all of it every few dozen cycles: with pages of 4 KiB the
//! processor spends up to a third of a run on looking up addresses, most where another program shares its caches. Where the
//! system gives large pages to those who ask for them (Linux, `madvise`), the GNU C library asks, if its environment says so when
//! a process begins. So the process begins again with that said; elsewhere nothing happens. No result depends on it.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
const VARIABLE: &str = "GLIBC_TUNABLES";

/// Ask for large pages; take memory from one heap, whose pages can be large, up to arrays of 32 MB; grow it by 4 MB at a time:
/// arrays of zeros are taken as fresh pages of the system, which are zero, only where the heap has to grow for them.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const TUNABLES: &str = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:glibc.malloc.top_pad=4194304";

/// Begins the process again if that gives it large pages; call it first in `main`. Who has set `glibc.malloc.hugetlb` in
/// `GLIBC_TUNABLES` to 0 or 1 is left alone: so one chooses, and so it happens once.
pub fn ask() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if let Some(tunables) = wanted() {
        use std::os::unix::process::CommandExt;
        let mut arguments = std::env::args_os();
        let (Ok(program), Some(name)) = (std::env::current_exe(), arguments.next()) else {
            return;
        };
        // It comes back only with an error, and then the process goes on as it is.
        let _ = std::process::Command::new(program)
            .arg0(name)
            .args(arguments)
            .env(VARIABLE, tunables)
            .exec();
    }
}

/// What the environment should say, if it does not and that helps.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn wanted() -> Option<String> {
    let policy = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok()?;
    let said = std::env::var(VARIABLE).unwrap_or_default();
    added(&policy, &said)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn added(policy: &str, said: &str) -> Option<String> {
    if !policy.contains("[madvise]") || said.contains("glibc.malloc.hugetlb") {
        return None;
    }
    let separator = if said.is_empty() { "" } else { ":" };
    Some(format!("{said}{separator}{TUNABLES}"))
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn large_pages_are_asked_for_where_they_are_given_for_the_asking_and_nobody_has_chosen() {
        assert_eq!(added("always [madvise] never\n", "").as_deref(), Some(TUNABLES));
        assert_eq!(added("[always] madvise never\n", ""), None);
        assert_eq!(added("always madvise [never]\n", ""), None);
        assert_eq!(added("always [madvise] never\n", "glibc.malloc.hugetlb=0"), None);
        let said = added("always [madvise] never\n", "glibc.malloc.check=1").unwrap();
        assert_eq!(said, format!("glibc.malloc.check=1:{TUNABLES}"));
        assert_eq!(added("always [madvise] never\n", &said), None);
    }
}
