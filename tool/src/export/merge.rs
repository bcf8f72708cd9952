//! Expositions of several programs as one: OpenMetrics has each family once, and tells its samples apart by labels.

use std::fmt::Write;

pub const END: &str = "# EOF\n";

/// What tells one program's samples from another's.
pub struct Source {
    pub process: i32,
    pub program: String,
    /// Its exposition, as the library writes it.
    pub text: String,
}

/// A metric, with its lines of TYPE, UNIT and HELP.
struct Family {
    name: String,
    /// Whose lines of TYPE, UNIT and HELP it has: of the first source, even if that has no sample.
    from: usize,
    head: String,
    samples: String,
}

pub fn merge(sources: &[Source]) -> String {
    let mut families: Vec<Family> = Vec::new();
    for (from, source) in sources.iter().enumerate() {
        let labels = format!("pid=\"{}\",program=\"{}\"", source.process, escape(&source.program));
        let mut current = 0;
        for line in source.text.lines() {
            if let Some(name) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split(' ').next()) {
                current = families.iter().position(|family| family.name == name).unwrap_or(families.len());
                if current == families.len() {
                    families.push(Family { name: name.to_string(), from, head: String::new(), samples: String::new() });
                }
            }
            let Some(family) = families.get_mut(current).filter(|_| line != END.trim_end()) else { continue };
            match line.starts_with('#') {
                true if family.from == from => {
                    let _ = writeln!(family.head, "{line}");
                }
                true => {}
                false => {
                    let _ = writeln!(family.samples, "{}", labelled(line, &labels));
                }
            }
        }
    }
    let mut text = "# TYPE snug_programs gauge\n# HELP snug_programs programs on snug that can be seen\n".to_string();
    let _ = writeln!(text, "snug_programs {}", sources.len());
    for family in &families {
        text.push_str(&family.head);
        text.push_str(&family.samples);
    }
    text + END
}

/// `name value` or `name{label="x"} value`, with more labels.
fn labelled(sample: &str, labels: &str) -> String {
    match sample.split_once('{') {
        Some((name, rest)) => format!("{name}{{{labels},{rest}"),
        None => {
            let (name, value) = sample.split_once(' ').unwrap_or((sample, ""));
            format!("{name}{{{labels}}} {value}")
        }
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_is_there_once() {
        let text = "# TYPE a gauge\n# HELP a of a\na 1\n# TYPE b gauge\nb{x=\"1\"} 2\n# EOF\n";
        let source = |process, program: &str| Source { process, program: program.into(), text: text.into() };
        let merged = merge(&[source(1, "one"), source(2, "t\"w")]);
        assert_eq!(
            merged.split_once("snug_programs 2\n").unwrap().1,
            "# TYPE a gauge\n# HELP a of a\na{pid=\"1\",program=\"one\"} 1\na{pid=\"2\",program=\"t\\\"w\"} 1\n\
             # TYPE b gauge\nb{pid=\"1\",program=\"one\",x=\"1\"} 2\nb{pid=\"2\",program=\"t\\\"w\",x=\"1\"} 2\n# EOF\n"
        );
    }

    #[test]
    fn a_family_without_samples_is_there_once_too() {
        let text = "# TYPE a gauge\n# HELP a of a\n# EOF\n";
        let source = |process| Source { process, program: "p".into(), text: text.into() };
        let merged = merge(&[source(1), source(2)]);
        assert_eq!(merged.split_once("snug_programs 2\n").unwrap().1, "# TYPE a gauge\n# HELP a of a\n# EOF\n");
    }

    #[test]
    fn of_nothing_there_is_a_whole_exposition() {
        assert!(merge(&[]).ends_with("snug_programs 0\n# EOF\n"));
    }
}
