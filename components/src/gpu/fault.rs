//! Faults on the machine's links: finds a link by its path, attaches fault and check, and reports what the check finds.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use thiserror::Error;
use warpwave_hw::link::fault::{Fault, FaultKind, FaultyLink, Finding, LinkCheck};
use warpwave_hw::link::wires::{LinkEnd, LinkEventLog, LinkObserver};
use warpwave_hw::path::Path;
use warpwave_hw::time::Cycle;

use super::{Gpu, LaunchError};
use crate::preset::nearest::nearest;

/// Reason why a link takes no fault.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum InjectError {
    /// The machine has no link with this path.
    #[error("no link `{path}`{}; a waveform of everything lists all links", suggestion(.similar))]
    Unknown {
        /// The path.
        path: String,
        /// The paths nearest to it.
        similar: Vec<String>,
    },
    /// The link has a fault.
    #[error("the link `{path}` has the fault `{}`, and takes no second one (`{}`): inject one fault into a link", .first.name(), .second.name())]
    Taken {
        /// The path.
        path: String,
        /// The fault that the link has.
        first: FaultKind,
        /// The refused fault.
        second: FaultKind,
    },
}

fn suggestion(paths: &[String]) -> String {
    match paths {
        [] => String::new(),
        paths => format!(", did you mean `{}`?", paths.join("`, `")),
    }
}

/// The end of a launch by a fault: what the check found, and the invariant that broke.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultReport {
    /// The violation at the link. `None` if a component stopped before the check saw one.
    pub finding: Option<Finding>,
    /// The message of the broken invariant: path, cycle and values.
    pub broken: Option<String>,
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.finding {
            Some(finding) => write!(f, "{finding}")?,
            None => write!(f, "the fault broke an invariant")?,
        }
        match &self.broken {
            Some(broken) => write!(f, "\n  an invariant broke: {broken}"),
            None => Ok(()),
        }
    }
}

/// The first violation that a check has found. [`LinkCheck::finding`] describes `is_end`.
pub(super) fn finding(checks: &[LinkCheck], now: Cycle, is_end: bool) -> Option<Finding> {
    checks.iter().find_map(|check| check.finding(now, is_end))
}

/// Runs a part of the simulation. Returns the message of a panic: a component's invariant broke.
pub(super) fn broken_invariant<R>(run: impl FnOnce() -> R) -> Result<R, String> {
    // Safe: after a panic the machine is only read, and then reset.
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<String>().cloned();
        let literal = panic.downcast_ref::<&str>().map(|&text| text.to_owned());
        text.or(literal)
            .unwrap_or_else(|| "a panic without a message".to_owned())
    })
}

/// Attaches a fault to the ends of one link. Collects the paths of all links.
struct Injector<'a> {
    path: &'a str,
    faulty: FaultyLink,
    /// Sending and receiving ends found.
    ends: [usize; 2],
    paths: Vec<String>,
}

impl LinkObserver for Injector<'_> {
    fn end(&mut self, _end: &LinkEnd<'_>) -> Option<(LinkEventLog, u32)> {
        None
    }

    fn fault(&mut self, end: &LinkEnd<'_>) -> Option<FaultyLink> {
        let path = end.link.path.to_string();
        let is_it = path == self.path;
        self.paths.push(path);
        is_it.then(|| {
            self.ends[usize::from(end.is_sender)] += 1;
            self.faulty.clone()
        })
    }
}

impl Gpu {
    /// Injects a fault into the link with this path, such as `gpu.l2_slice[3].response`. Launches then end with [`LaunchError::Fault`] when
    /// a message is lost, doubled, changed or overtaken.
    ///
    /// # Errors
    /// If no link between two components has this path, or if that link has a fault.
    pub fn inject(&mut self, path: &str, fault: Fault) -> Result<(), InjectError> {
        if let Some((_, first)) = self.faulty_links.iter().find(|(link, _)| link == path) {
            return Err(InjectError::Taken {
                path: path.to_owned(),
                first: *first,
                second: fault.kind,
            });
        }
        let check = LinkCheck::new(Path::root(path));
        let mut injector = Injector {
            path,
            faulty: FaultyLink {
                fault,
                check: check.clone(),
            },
            ends: [0; 2],
            paths: Vec::new(),
        };
        let tiles = self.clock.tiles_mut().iter_mut();
        let components = tiles.flat_map(|tile| tile.components_mut());
        components.for_each(|component| component.ports(&mut injector));
        // A link of the host has one of its ends outside all components.
        if injector.ends != [1, 1] {
            // A link between two components was seen twice.
            injector.paths.sort_unstable();
            injector.paths.dedup();
            let similar = nearest(path, injector.paths.iter().map(String::as_str));
            let path = path.to_owned();
            return Err(InjectError::Unknown { path, similar });
        }
        self.faults.push(check);
        self.faulty_links.push((path.to_owned(), fault.kind));
        Ok(())
    }

    /// The cycle in which each injected fault acted, in the order of injection. `None` if no message was sent in its time.
    pub fn faults_acted(&self) -> Vec<Option<Cycle>> {
        self.faults.iter().map(LinkCheck::acted).collect()
    }

    /// The end of a launch by a fault, if a check has found a violation or an invariant broke.
    pub(super) fn fault_report(&self, broken: Option<String>) -> Option<LaunchError> {
        let finding = finding(&self.faults, self.clock.now(), true);
        let is_fault = finding.is_some() || broken.is_some();
        is_fault.then_some(LaunchError::Fault(FaultReport { finding, broken }))
    }
}
