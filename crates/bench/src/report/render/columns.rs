//! Rows as CSV: a column for each scalar field, named by its path with dots (`machine.cpu`,
//! `latency_ns.READ.p99`), in the order in which the program declares the fields. Lists and
//! histograms are left out.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{Context, Failure, Result};
use crate::report::Row;

/// Kilobytes of base64 each, which no spreadsheet reads.
const LEFT_OUT: &str = "histograms";

/// Paths and values, in the order of the row.
type Fields = Vec<(String, String)>;

pub(super) fn csv(rows: &[Row]) -> Result<String> {
    let what = || "cannot write CSV";
    let rows: Vec<Fields> = rows.iter().map(fields).collect::<Result<_>>()?;
    let columns = columns(&rows);
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&columns).context(what)?;
    for fields in &rows {
        let fields: std::collections::HashMap<&str, &str> =
            fields.iter().map(|(path, value)| (path.as_str(), value.as_str())).collect();
        let values = columns.iter().map(|&column| fields.get(column).copied().unwrap_or_default());
        writer.write_record(values).context(what)?;
    }
    let bytes = writer.into_inner().context(what)?;
    String::from_utf8(bytes).context(what)
}

/// Every path once. One that is new in a later row comes behind the path before it in that row.
fn columns<'a>(rows: &'a [Fields]) -> Vec<&'a str> {
    let mut columns: Vec<&str> = Vec::new();
    let mut known: HashSet<&str> = HashSet::new();
    for fields in rows {
        if fields.iter().all(|(path, _)| known.contains(path.as_str())) {
            continue;
        }
        let mut next = 0;
        for (path, _) in fields {
            if known.insert(path) {
                columns.insert(next, path);
                next += 1;
            } else if let Some(place) = columns.iter().position(|column| column == path) {
                next = place + 1;
            }
        }
    }
    // What is null in one row and has members in another is its members' columns.
    let parents = |path: &'a str| path.match_indices('.').map(move |(at, _)| &path[..at]);
    let parents: HashSet<&str> = columns.iter().copied().flat_map(parents).collect();
    columns.retain(|path| !parents.contains(path));
    columns
}

/// An object's members in the order of the text.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

fn fields(row: &Row) -> Result<Fields> {
    let text = serde_json::to_string(row).map_err(Failure::new)?;
    let mut fields = Vec::new();
    flatten("", &text, &mut fields)?;
    Ok(fields)
}

fn flatten(prefix: &str, text: &str, fields: &mut Fields) -> Result<()> {
    let what = || "cannot take a row apart";
    let Members(members) = serde_json::from_str(text).context(what)?;
    for (name, value) in members {
        if name == LEFT_OUT {
            continue;
        }
        let path = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match serde_json::from_str(value.get()).context(what)? {
            Value::Object(_) => flatten(&path, value.get(), fields)?,
            Value::Array(_) => {}
            Value::Null => fields.push((path, String::new())),
            Value::String(text) => fields.push((path, text)),
            _ => fields.push((path, value.get().to_owned())),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::samples::{row, row_with_histograms};
    use super::*;
    use crate::report::row::samples;

    fn read(rows: &[Row]) -> (Vec<String>, Vec<Vec<String>>) {
        let text = csv(rows).unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let words = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
        let header = words(reader.headers().unwrap());
        (header, reader.records().map(|record| words(&record.unwrap())).collect())
    }

    #[test]
    fn one_row_is_its_golden_lines() {
        let golden = "\
schema,run,bench,job,cell,repeat,command,commit,machine.cpu,machine.cores,machine.memory_bytes,\
machine.kernel,machine.file_system,machine.mount_options,machine.read_ahead_kb,\
machine.damon.reclaim,machine.transparent_huge_pages,target_cpu,store,\
store_version,loses,workload,phase,folder,request_distribution,insert_order,threads,durability,records,\
fields,field_bytes,value_bytes,document_bytes,seed,digest,live_bytes,open_seconds,\
seconds,window_seconds,operations,ops_per_sec,latency_ns.READ.count,latency_ns.READ.mean,\
latency_ns.READ.min,latency_ns.READ.p50,latency_ns.READ.p90,latency_ns.READ.p95,\
latency_ns.READ.p99,latency_ns.READ.p999,latency_ns.READ.p9999,latency_ns.READ.max,scanned_rows,\
rss_anon_start_bytes,rss_anon_idle_bytes,rss_anon_end_bytes,rss_file_end_bytes,settle_seconds,\
settled,disk_bytes,written_bytes,cpu_seconds,close_seconds,errors,first_error,not_found,\
records_end,writes_above_20ms,disk_probe_max_ns,disk_peak_bytes,cancelled_bytes,\
intended_latency_ns,page_cache,target_ops_per_sec
1,run,table-bound,,cell,2,table-bound,unknown,cpu,2,1,6,ext4,rw,128,N,never,haswell,rocksdb,1,\
,c,run,main,scrambled,hashed,1,durable,1,1,1,1,1,1,,,0.1,1.0,1.0,10,3.5,10,1500.0,,1500,,\
2000,2500,3000,4000,250000,0,1048576,2097152,5242880,0,0.0,true,7340032,0,1.0,0.0,0,,0,,,,,,,,
";
        assert_eq!(csv(&[samples::row("rocksdb", 2, 3.5)]).unwrap(), golden);
    }

    #[test]
    fn columns_of_later_rows_stand_where_their_fields_do() {
        let mut last = row();
        last.options.insert("b".to_owned(), "x, \"y\"".into());
        let (header, rows) = read(&[samples::row("rocksdb", 1, 1.0), row(), last]);
        let place = |column: &str| header.iter().position(|name| name == column).expect(column);
        assert!(place("latency_ns.READ.p90") < place("latency_ns.UPDATE.count"));
        assert!(place("latency_ns.UPDATE.p90") < place("scanned_rows"));
        assert_eq!(place("options.b") + 1, place("loses"));
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[2][place("options.b")], "x, \"y\"");
        assert_eq!(rows[0][place("options.b")], "");
        let unique: HashSet<_> = header.iter().collect();
        assert_eq!(unique.len(), header.len());
    }

    #[test]
    fn an_absent_part_has_the_columns_of_a_present_one() {
        let mut whole = row();
        whole.measurement.intended_latency_ns = Some(whole.measurement.latency_ns.clone());
        let (header, rows) = read(&[row(), whole]);
        assert!(!header.contains(&"intended_latency_ns".to_owned()), "{header:?}");
        let column = "intended_latency_ns.READ.count";
        let place = header.iter().position(|name| name == column).expect(column);
        assert_eq!((rows[0][place].as_str(), rows[1][place].as_str()), ("", "4"));
    }

    #[test]
    fn histograms_are_left_out() {
        assert_eq!(read(&[row_with_histograms()]), read(&[row()]));
    }
}
