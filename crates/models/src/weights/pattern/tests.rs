use super::*;

#[test]
fn placeholders_stand_for_numbers() {
    let found = numbers("h.{layer}.e.{expert}.w", "h.10.e.3.w").expect("matches");
    assert_eq!(
        filled("b.{expert}.{layer}.{other}", &found),
        "b.3.10.{other}"
    );
    assert_eq!(numbers("h.{layer}.w", "h..w"), None);
    assert_eq!(numbers("h.{layer}.w", "h.a.w"), None);
    assert_eq!(numbers("h.{layer}.w", "h.1.w.w"), None);
    assert_eq!(numbers("{a}.{a}", "1.2"), None);
    assert!(numbers("{a}.{a}", "12.12").is_some());
    assert_eq!(placeholder("a.{b}.{c}"), Some("b"));
}

#[test]
fn stars_stand_for_anything() {
    assert!(matches("position_ids", "*position_ids"));
    assert!(matches("a.b.position_ids", "*.position_ids"));
    assert!(!matches("position_ids", "*.position_ids"));
    assert!(matches("h.3.attn.bias", "h.{layer}.attn.bias"));
    assert!(!matches("aba", "ab*ba"), "ends may not overlap");
    assert!(matches("a", "a") && !matches("b", "a"));
    assert_eq!(renamed("bert.a.b", "bert.*", "*").as_deref(), Some("a.b"));
    assert_eq!(
        renamed("a.x.b.y.c", "a.*.b.*.c", "*-*").as_deref(),
        Some("x-y")
    );
    assert_eq!(
        renamed("l.3.gamma", "l.{i}.gamma", "l.{i}.weight").as_deref(),
        Some("l.3.weight")
    );
    assert_eq!(renamed("other", "bert.*", "*"), None);
}
