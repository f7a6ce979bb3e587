//! Device memory: channels of banks, each behind a queue. What the model calls HBM stands for GDDR as well; timing tells them
//! apart.

pub mod channel;

mod bank;

mod refresh;

mod sched;

mod timing;
