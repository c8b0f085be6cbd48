//! Files that are not MNIST's.

use tempfile::tempdir;

use super::*;

#[test]
fn a_file_is_whole_or_refused() {
    let folder = tempdir().unwrap();
    let (images, labels) = ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
    let write = |name: &str, head: &[u32], body: &[u8]| {
        let head = head.iter().flat_map(|word| word.to_be_bytes());
        let bytes: Vec<u8> = head.chain(body.iter().copied()).collect();
        fs::write(folder.path().join(name), bytes).unwrap();
    };
    let refused = || match Mnist::test(folder.path()) {
        Ok(_) => panic!("it is read"),
        Err(error) => error
            .to_string()
            .replace(&format!("{}/", folder.path().display()), ""),
    };
    let again = "remove the folder, and in that of the repository `cargo xtask fetch mnist` fetches it again";
    assert_eq!(
        refused(),
        format!(
            "{images} is not there: in the folder of the repository, `cargo xtask fetch mnist` fetches it"
        )
    );
    let pixels: Vec<u8> = (0..2 * PIXELS).map(|pixel| (pixel % 251) as u8).collect();
    for (head, size, problem) in [
        ([0x801, 2, 28, 28], 2 * PIXELS, "is not a file of MNIST"),
        ([0x803, 2, 28, 27], 2 * PIXELS, "is not a file of MNIST"),
        ([0x803, 0, 28, 28], 0, "is not a file of MNIST"),
        ([0x803, 2, 28, 28], 1000, "has 1000 bytes of 1568"),
    ] {
        write(images, &head, &pixels[..size]);
        assert_eq!(refused(), format!("{images} {problem}: {again}"));
    }
    fs::write(folder.path().join(images), [0, 0]).unwrap();
    assert_eq!(
        refused(),
        format!("{images} is not a file of MNIST: {again}")
    );
    write(images, &[0x803, 2, 28, 28], &pixels);
    write(labels, &[0x801], &[0, 0]);
    assert_eq!(
        refused(),
        format!("{labels} is not a file of MNIST: {again}")
    );
    write(labels, &[0x801, 1], &[3]);
    assert_eq!(refused(), format!("{labels}: 1 digits for 2 scans"));
    write(labels, &[0x801, 2], &[3, 10]);
    assert_eq!(refused(), format!("{labels}: 10 is no digit"));
    write(labels, &[0x801, 2], &[3, 9]);
    let mnist = Mnist::test(folder.path()).unwrap();
    assert_eq!((mnist.len(), &mnist.digits[..]), (2, &[3, 9][..]));
    assert_eq!(mnist.scan(1), &pixels[PIXELS..]);
    let before = mnist.fingerprint();
    write(labels, &[0x801, 2], &[3, 8]);
    assert_ne!(Mnist::test(folder.path()).unwrap().fingerprint(), before);
}
