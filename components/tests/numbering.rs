//! Numbers of SMs, against published logs.

use warpwave_components::preset;

/// `%smid` of the SMs of a GPC.
fn smids(preset: &str, gpc: usize) -> Vec<u32> {
    let config = preset::load(preset, &[]).unwrap().config;
    config.gpcs()[gpc].clone().map(|sm| config.smid(sm as u16)).collect()
}

#[test]
fn smids_of_a_gpc_are_those_in_the_logs_of_clusters_on_h800() {
    // The logs of `luo25` have these for a cluster of 16. The H800 PCIe has the GPCs of an H100 PCIe.
    let pairs = [2, 16, 30, 44, 58, 72, 86, 100];
    assert_eq!(smids("h100-pcie", 1), pairs.map(|smid| [smid, smid + 1]).concat());
    // The ninth TPC of the first GPC comes after eight rounds of seven TPCs.
    assert_eq!(smids("h100-pcie", 0)[16..], [112, 113]);
}

#[test]
fn smids_count_to_the_number_of_sms() {
    for preset in preset::names() {
        let config = preset::load(preset, &[]).unwrap().config;
        let mut all = config.by_smid();
        all.sort_unstable();
        assert_eq!(all, (0..config.n_sms() as usize).collect::<Vec<_>>(), "{preset}");
    }
}
