// build.rs - writes a module of many small types and functions, so that the compiler has work.
// PARTS says how many.
use std::{env, fmt::Write, fs, path::Path};

fn main() {
    let mut text = String::new();
    let count: usize = env::var("PARTS").map_or(120, |parts| parts.parse().unwrap());
    for n in 0..count {
        writeln!(
            text,
            "#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
             pub struct Part{n} {{
                 pub id: u64, pub name: String, pub rest: Vec<(u32, Option<String>)>,
             }}
             impl crate::Step for Part{n} {{
                 fn step(&self, x: u64) -> u64 {{
                     let grown: Vec<u64> =
                         (0..x % {m} + 3).map(|i| i.wrapping_mul(self.id ^ {n})).collect();
                     let text = format!(\"{{:?}}{{:?}}\", self.clone(), grown);
                     let add = |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte));
                     text.bytes().fold(x, add)
                 }}
             }}",
            m = n % 17 + 2
        )
        .unwrap();
    }
    writeln!(text, "pub fn all() -> Vec<Box<dyn crate::Step + Send>> {{ vec![").unwrap();
    for n in 0..count {
        writeln!(
            text,
            "Box::new(Part{n} {{ id: {n}, name: \"part {n}\".repeat({n} % 5), \
             rest: vec![({n}, None), (1, Some(\"x\".into()))] }}),"
        )
        .unwrap();
    }
    writeln!(text, "] }}").unwrap();
    let path = Path::new(&env::var_os("OUT_DIR").unwrap()).join("parts.rs");
    fs::write(path, text).unwrap();
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=PARTS");
}
