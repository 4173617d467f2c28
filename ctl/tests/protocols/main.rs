//! The protocols of the commands that remove, disable and erase. The commands run in this process,
//! so that the tests control time and the network.

mod simulation;
