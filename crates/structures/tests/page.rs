//! The page has a place for each table, and no place for another.

use std::fs;
use std::path::Path;

use structures::report::TABLES;

#[test]
fn the_page_has_the_marks_of_all_tables() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/performance.md");
    let page = fs::read_to_string(page).unwrap();
    let marks = |prefix: &str| -> Vec<String> {
        let names = page.lines().filter_map(|line| line.strip_prefix(prefix));
        names.filter_map(|line| line.strip_suffix(" -->")).map(str::to_owned).collect()
    };
    let (mut begun, ended) = (marks("<!-- figures "), marks("<!-- /figures "));
    assert_eq!(begun, ended, "every mark is closed before the next");
    begun.sort_unstable();
    let mut tables = TABLES.map(str::to_owned);
    tables.sort_unstable();
    assert_eq!(begun, tables);
}
