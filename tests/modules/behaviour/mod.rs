//! What the documentation of the modules promises.

mod alignment;
mod conversions;
mod dropout;
mod freezing;
mod gate;
mod heads;
mod initial;
mod leakage;
mod masks;
mod own_module;
mod padding;
mod positions;
mod qk_norm;
mod statistics;
mod token_positions;
mod trace;
mod weights;
