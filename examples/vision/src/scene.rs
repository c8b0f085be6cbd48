//! A scene as a file, to look at.

use std::{io::Cursor, path::PathBuf};

use clap::Args;
use example_common::{error::Error, files};
use image::ImageFormat;

use crate::{mnist::Mnist, scenes::Scenes};

/// Options of `scene`.
#[derive(Args)]
pub struct SceneArgs {
    /// The number of the scene; those below 1000 are of the test
    number: usize,
    /// The PNG to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The folder with MNIST
    #[arg(long, value_name = "FOLDER", default_value = "target/weights/mnist")]
    data: PathBuf,
}

/// Writes a scene.
pub fn run(args: &SceneArgs) -> Result<(), Error> {
    let mnist = Mnist::test(&args.data)?;
    let scene = Scenes::test(&mnist).scene(&mnist, args.number);
    let mut png = Cursor::new(Vec::new());
    scene.image().write_to(&mut png, ImageFormat::Png)?;
    Ok(files::replace(&args.file, png.get_ref())?)
}
