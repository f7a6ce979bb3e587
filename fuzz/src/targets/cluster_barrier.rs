//! Target: the cluster barrier of a GPC between the CTA managers of its SMs.
//!
//! Oracle: a count of arrivals per cluster. A cluster opens two links and `delay` cycles after its last arrival or later. It opens once
//! per round, for every CTA that has not ended. A CTA arrives in the next round only after its barrier has opened, as a CTA manager does.

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use warpwave_components::front::cluster_barrier::{ClusterBarrier, Ports};
use warpwave_components::proto::cluster::{ClusterArrive, ClusterOpen};
use warpwave_hw::path::Path;
use warpwave_hw::time::Cycle;

use crate::draw::{Pace, one_of, up_to, within};
use crate::features;
use crate::harness::{Late, SecondRun, Sink, Wiring, World, check as check_component, combine};

/// A barrier unit and its clusters.
#[derive(Arbitrary, Clone, Debug)]
pub struct Input {
    second: SecondRun,
    #[arbitrary(with = within(1..=4))]
    sms: u16,
    #[arbitrary(with = one_of(&[10, 0, 1, 3, 70]))]
    delay: u64,
    #[arbitrary(with = within(1..=4))]
    latency: u32,
    #[arbitrary(with = one_of(&[4, 1, 2]))]
    depth: u32,
    paces: [Pace; 4],
    #[arbitrary(with = up_to(10))]
    clusters: Vec<ClusterSpec>,
}

#[derive(Arbitrary, Clone, Debug)]
struct ClusterSpec {
    /// Cycle of its first arrival.
    #[arbitrary(with = within(0..=200))]
    start: u16,
    #[arbitrary(with = up_to(15))]
    ctas: Vec<CtaSpec>,
}

/// One CTA: a round is the wait before an arrival.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct CtaSpec {
    sm: u8,
    /// Barriers that it passes before it ends.
    #[arbitrary(with = within(0..=4))]
    rounds: u8,
    #[arbitrary(with = one_of(&[0, 1, 5, 40]))]
    wait: u64,
}

/// A CTA that runs.
#[derive(Clone, Copy)]
struct Cta {
    spec: CtaSpec,
    sm: usize,
    /// Barriers that it has passed.
    passed: u8,
    has_ended: bool,
    /// Its arrival has been sent and its barrier has not opened.
    waits: bool,
}

/// A cluster that runs.
struct Cluster {
    ctas: Vec<Cta>,
    /// CTAs that have arrived in this round, or ended, as far as the unit has received it.
    arrived: Vec<bool>,
    /// For each CTA that must be told that the barrier is open: the cycle of the last arrival.
    opening: Vec<Option<u64>>,
}

struct Neighbours {
    input: Input,
    arrivals: Vec<Late<ClusterArrive>>,
    opens: Vec<Sink<ClusterOpen>>,
    clusters: BTreeMap<u64, Cluster>,
    rounds: u64,
}

impl Neighbours {
    fn start(&mut self) {
        self.rounds = 0;
        self.clusters.clear();
        let n_sms = usize::from(self.input.sms);
        for (number, spec) in (0..)
            .zip(self.input.clusters.clone())
            .filter(|(_, spec)| !spec.ctas.is_empty())
        {
            let ctas: Vec<Cta> = spec
                .ctas
                .iter()
                .map(|&spec| Cta {
                    spec,
                    sm: usize::from(spec.sm) % n_sms,
                    passed: 0,
                    has_ended: false,
                    waits: false,
                })
                .collect();
            let n = ctas.len();
            let cluster = Cluster {
                ctas,
                arrived: vec![false; n],
                opening: vec![None; n],
            };
            // The index of the first CTA names a cluster.
            self.clusters.insert(16 * number, cluster);
            (0..n).for_each(|rank| self.go_on(16 * number, rank, spec.start.into()));
        }
    }

    /// Sends the next arrival of a CTA that runs from cycle `now` on: at its barrier, or its end.
    fn go_on(&mut self, number: u64, rank: usize, now: u64) {
        let cluster = self.clusters.get_mut(&number).expect("the cluster runs");
        let size = cluster.ctas.len() as u8;
        let cta = &mut cluster.ctas[rank];
        let ended = cta.passed == cta.spec.rounds;
        cta.waits = !ended;
        cta.has_ended = ended;
        let arrive = ClusterArrive {
            cluster: number,
            rank: rank as u8,
            size,
            ended,
        };
        self.arrivals[cta.sm].push(now + 1 + cta.spec.wait, arrive);
    }

    /// Notes an arrival that is sent in cycle `now`. The last one of a round opens the barrier.
    fn note_arrival(&mut self, arrive: ClusterArrive, now: Cycle) {
        let cluster = self.clusters.get_mut(&arrive.cluster).expect("the cluster runs");
        cluster.arrived[usize::from(arrive.rank)] = true;
        if !cluster.arrived.iter().all(|&arrived| arrived) {
            return;
        }
        let running: Vec<bool> = cluster.ctas.iter().map(|cta| !cta.has_ended).collect();
        features::note((running.len(), running.iter().filter(|&&runs| runs).count()));
        // A round of CTAs that have all ended opens nothing.
        self.rounds += u64::from(running.contains(&true));
        // A CTA that has ended counts as arrived in every later round.
        cluster.arrived = running.iter().map(|&runs| !runs).collect();
        cluster.opening = running.iter().map(|&runs| runs.then_some(now.0)).collect();
    }

    fn take_open(&mut self, sm: usize, now: Cycle) {
        let Some(open) = self.opens[sm].take(now) else { return };
        let rank = usize::from(open.rank);
        let cluster = self
            .clusters
            .get_mut(&open.cluster)
            .expect("only a running cluster opens");
        let cta = &mut cluster.ctas[rank];
        assert_eq!(cta.sm, sm, "the SM of CTA {rank} of cluster {}", open.cluster);
        assert!(cta.waits, "CTA {rank} of cluster {} does not wait", open.cluster);
        let last = cluster.opening[rank].take();
        let last = last.unwrap_or_else(|| panic!("cluster {} opens before its last arrival", open.cluster));
        // Two links and the delay follow the last arrival.
        let earliest = last + 2 * u64::from(self.input.latency) + self.input.delay;
        assert!(
            now.0 >= earliest,
            "cluster {} opens in cycle {now:?}, not {earliest}",
            open.cluster
        );
        cta.passed += 1;
        self.go_on(open.cluster, rank, now.0);
    }
}

impl World for Neighbours {
    fn tick(&mut self, now: Cycle) -> bool {
        for sm in 0..self.arrivals.len() {
            // Openings first: they lead to the next arrivals.
            self.take_open(sm, now);
            let mut sent = None;
            self.arrivals[sm].tick(now, |arrive| sent = Some(*arrive));
            if let Some(arrive) = sent {
                self.note_arrival(arrive, now);
            }
        }
        let runs = |cluster: &Cluster| cluster.ctas.iter().any(|cta| !cta.has_ended);
        self.clusters.values().any(runs) || !self.arrivals.iter().all(Late::is_empty)
    }

    fn reset(&mut self) {
        self.arrivals.iter_mut().for_each(Late::clear);
        self.opens.iter_mut().for_each(Sink::clear);
        self.start();
    }

    fn digest(&self) -> u64 {
        combine(self.opens.iter().map(Sink::digest).chain([self.rounds]))
    }
}

/// Runs the barrier unit.
///
/// # Panics
/// If a barrier opens early, twice, never, or for a CTA that does not wait. If the unit breaks the contract.
pub fn check(input: Input) {
    let build = |wiring: &Wiring| {
        let (mut arrivals, mut opens, mut arrive, mut open) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for sm in 0..usize::from(input.sms) {
            let (source, port) = wiring.input(input.latency, input.depth);
            arrivals.push(Late::new(source));
            arrive.push(port);
            let (port, sink) = wiring.output(input.latency, input.depth);
            open.push(port);
            opens.push(Sink::new(sink, input.paces[sm]));
        }
        let mut world = Neighbours {
            arrivals,
            opens,
            clusters: BTreeMap::new(),
            rounds: 0,
            input: input.clone(),
        };
        world.start();
        let unit = ClusterBarrier::new(Path::root("barrier"), input.delay, Ports { arrive, open });
        (unit, world)
    };
    check_component(build, input.second, 200_000);
}
