//! Replaces parts of the machine with a user's own types, without a change to this crate.
//!
//! ```text
//!                 +-- before_l1: one for each SM --+
//!   LSU --request-+-->  own component  --request---+-> L1, or the user's (l1)
//!       <-response+---                 <--response-+--
//! ```
//!
//! | Method | Part | One for |
//! |---|---|---|
//! | [`Factory::scheduling_policy`] | the warp scheduling policy | each sub-core |
//! | [`Factory::l1_replacement`], [`Factory::l2_replacement`] | the replacement policy | each L1, each L2 slice |
//! | [`Factory::before_l1`] | a component between the LSU and the L1 | each SM |
//! | [`Factory::l1`] | the L1 | each SM |
//!
//! The machine builds every other part from the configuration.

use std::sync::Arc;

use warpwave_hw::component::Component;
use warpwave_hw::link::{InPort, OutPort};
use warpwave_hw::path::Path;

use crate::cache::replacement::{NewReplacement, Replacement};
use crate::proto::mem::Packet;
use crate::sm::l1::{self, L1};
use crate::sm::subcore::policy::SchedulingPolicy;

/// The links of a component between the LSU and the L1.
///
/// Each link takes one cycle, so even a component without delay adds two cycles to an L1 hit. Every packet of the LSU must return to the
/// LSU once. Packets that the component itself sends to the L1 have the tag [`OWN_TAG`](crate::proto::mem::OWN_TAG). Their responses must
/// not go to the LSU.
pub struct BeforeL1Ports {
    /// Packets from the LSU.
    pub from_lsu: InPort<Box<Packet>>,
    /// To the L1.
    pub to_l1: OutPort<Box<Packet>>,
    /// Responses from the L1.
    pub from_l1: InPort<Box<Packet>>,
    /// To the LSU.
    pub to_lsu: OutPort<Box<Packet>>,
}

warpwave_hw::show_ports!(BeforeL1Ports: from_lsu, to_l1, from_l1, to_lsu);

type NewPolicy = dyn Fn(&Path) -> Box<dyn SchedulingPolicy>;
type NewBeforeL1 = dyn Fn(Path, BeforeL1Ports) -> Box<dyn Component>;
type NewL1 = dyn Fn(Path, l1::Config, l1::Ports) -> Box<dyn Component>;

/// Constructors of the parts that a user replaces. The default replaces none.
#[derive(Default)]
pub struct Factory {
    scheduling_policy: Option<Box<NewPolicy>>,
    l1_replacement: Option<NewReplacement>,
    l2_replacement: Option<NewReplacement>,
    before_l1: Option<(&'static str, Box<NewBeforeL1>)>,
    l1: Option<Box<NewL1>>,
}

impl Factory {
    /// A factory that replaces nothing.
    pub fn new() -> Self {
        Factory::default()
    }

    /// Sets the constructor of each sub-core's scheduling policy. It gets the path of the scheduler.
    pub fn scheduling_policy<P: SchedulingPolicy + 'static>(mut self, new: impl Fn(&Path) -> P + 'static) -> Self {
        self.scheduling_policy = Some(Box::new(move |scheduler| Box::new(new(scheduler))));
        self
    }

    /// Sets the constructor of each L1's replacement policy. It gets the numbers of sets and ways.
    pub fn l1_replacement<R: Replacement + 'static>(
        mut self,
        new: impl Fn(usize, usize) -> R + Send + Sync + 'static,
    ) -> Self {
        self.l1_replacement = Some(Arc::new(move |sets, ways| Box::new(new(sets, ways))));
        self
    }

    /// Sets the constructor of each L2 slice's replacement policy. It gets the numbers of sets and ways.
    pub fn l2_replacement<R: Replacement + 'static>(
        mut self,
        new: impl Fn(usize, usize) -> R + Send + Sync + 'static,
    ) -> Self {
        self.l2_replacement = Some(Arc::new(move |sets, ways| Box::new(new(sets, ways))));
        self
    }

    /// Sets the constructor of a component between the LSU and the L1 of each SM. `name` is the last part of its path.
    pub fn before_l1<C: Component>(
        mut self,
        name: &'static str,
        new: impl Fn(Path, BeforeL1Ports) -> C + 'static,
    ) -> Self {
        self.before_l1 = Some((name, Box::new(move |path, ports| Box::new(new(path, ports)))));
        self
    }

    /// Sets the constructor of the component that replaces the L1 of each SM.
    pub fn l1<C: Component>(mut self, new: impl Fn(Path, l1::Config, l1::Ports) -> C + 'static) -> Self {
        self.l1 = Some(Box::new(move |path, config, ports| Box::new(new(path, config, ports))));
        self
    }

    pub(super) fn has_before_l1(&self) -> bool {
        self.before_l1.is_some()
    }

    pub(super) fn build_before_l1(&self, sm: &Path, ports: BeforeL1Ports) -> Box<dyn Component> {
        let (name, new) = self.before_l1.as_ref().expect("called only if `has_before_l1`");
        new(sm.child(name), ports)
    }

    pub(super) fn build_policy(&self, scheduler: &Path) -> Option<Box<dyn SchedulingPolicy>> {
        self.scheduling_policy.as_ref().map(|new| new(scheduler))
    }

    pub(super) fn l2_replacement_or(&self, named: NewReplacement) -> NewReplacement {
        self.l2_replacement.clone().unwrap_or(named)
    }

    pub(super) fn build_l1(&self, path: Path, mut config: l1::Config, ports: l1::Ports) -> Box<dyn Component> {
        if let Some(own) = &self.l1_replacement {
            // In the configuration, so that a user's own L1 gets it too.
            config.replacement = own.clone();
        }
        match &self.l1 {
            Some(new) => new(path, config, ports),
            None => Box::new(L1::new(path, config, ports)),
        }
    }
}
