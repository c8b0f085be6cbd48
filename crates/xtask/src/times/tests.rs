use super::children_cpu;

#[test]
fn a_busy_child_is_counted() {
    let before = children_cpu().unwrap();
    let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done";
    let status = std::process::Command::new("sh").args(["-c", busy]).status();
    assert!(status.unwrap().success());
    assert!(children_cpu().unwrap() > before);
}
