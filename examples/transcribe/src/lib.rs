#![doc = include_str!("../README.md")]

pub mod pictures;
pub mod recording;
