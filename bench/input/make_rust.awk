# Writes a Rust crate of many types with traits, generic functions and matches between them.
# usage: awk -f make_rust.awk -v types=100 >large.rs
BEGIN {
    print "use std::collections::{BTreeMap, HashMap};"
    print "pub trait Shape { fn area(&self) -> f64; fn name(&self) -> String; }"
    for (i = 0; i < types; i++) {
        printf "#[derive(Debug, Clone, PartialEq)]\npub struct Type%d { pub a: f64, pub b: Vec<u32>, pub c: Option<String> }\n", i
        printf "impl Shape for Type%d {\n", i
        printf "    fn area(&self) -> f64 { self.b.iter().map(|&x| f64::from(x) * self.a).sum::<f64>() + %d.0 }\n", i
        printf "    fn name(&self) -> String { format!(\"type %d {:?} {:.2}\", self.c, self.a) }\n}\n", i
        printf "pub fn group%d(items: &[Type%d]) -> BTreeMap<String, Vec<Type%d>> {\n", i, i, i
        printf "    let mut map: BTreeMap<String, Vec<Type%d>> = BTreeMap::new();\n", i
        printf "    for item in items { map.entry(item.name()).or_default().push(item.clone()); }\n    map\n}\n"
        printf "pub fn count%d(words: &str) -> HashMap<&str, usize> {\n", i
        printf "    let mut map = HashMap::new();\n"
        printf "    for word in words.split_whitespace().filter(|w| w.len() > %d) { *map.entry(word).or_insert(0) += 1; }\n    map\n}\n", i % 7
    }
    print "pub enum Any {"
    for (i = 0; i < types; i++) printf "    T%d(Type%d),\n", i, i
    print "}\nimpl Any {\n    pub fn shape(&self) -> Box<dyn Shape> {\n        match self {"
    for (i = 0; i < types; i++) printf "            Any::T%d(x) => Box::new(x.clone()),\n", i
    print "        }\n    }\n}"
}
