//! Configurations and weights survive a file, and a damaged file is refused.

mod added;
mod configs;
mod coverage;
mod damage;
mod values;
mod weights;
