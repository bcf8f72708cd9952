//! What snug.h declares, and what its comments say of it.
//!
//! The header is written in paragraphs: a blank line ends one, a comment begins one and is about what follows it, and a
//! comment with a rule of dashes begins a section. That is all that is known here of C.

/// The whole header: what its first comment says, and its sections.
pub struct Header {
    pub about: Vec<String>,
    pub sections: Vec<Section>,
}

pub struct Section {
    pub title: String,
    pub paragraphs: Vec<Paragraph>,
}

/// A comment, and the declarations that it is about; one of both may be missing.
#[derive(Default)]
pub struct Paragraph {
    pub text: Vec<String>,
    pub code: String,
}

impl Section {
    pub fn functions(&self) -> Vec<&str> {
        self.paragraphs.iter().flat_map(Paragraph::functions).collect()
    }
}

impl Paragraph {
    pub fn functions(&self) -> Vec<&str> {
        prototypes_in(&self.code).filter_map(|(name, _)| name).collect()
    }

    /// The declarations of functions, each on a line, without what only compilers want to know.
    pub fn prototypes(&self) -> Vec<String> {
        prototypes_in(&self.code).filter(|(name, _)| name.is_some()).map(|(_, text)| plain(text)).collect()
    }

    /// Whether it declares something besides functions: types, or numbers.
    pub fn has_types(&self) -> bool {
        self.code.contains("struct {") || self.code.contains("#define") || self.code.contains("{\n")
    }
}

/// Declarations, with the name of the function that each declares.
fn prototypes_in(code: &str) -> impl Iterator<Item = (Option<&str>, &str)> {
    let parts = if code.contains("SNUG_PUBLIC") { code.split(';') } else { "".split(';') };
    parts.map(|part| {
        let name = part.match_indices("snug_").find_map(|(start, _)| {
            let rest = &part[start..];
            let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')?;
            rest[end..].starts_with('(').then_some(&rest[..end])
        });
        (name, part)
    })
}

/// A prototype as a manual shows it.
fn plain(declaration: &str) -> String {
    let words = declaration
        .split_whitespace()
        .filter(|word| !matches!(*word, "SNUG_PUBLIC" | "SNUG_NOTHROW" | "SNUG_MALLOC_LIKE"));
    let text = words.collect::<Vec<_>>().join(" ");
    let text = text.split(" SNUG_ALLOC_SIZE").next().unwrap_or_default().to_string();
    text + ";"
}

pub fn parse(header: &str) -> Header {
    let (first, rest) = header.split_once("*/").unwrap_or((header, ""));
    let mut sections = Vec::new();
    for part in rest.split("/* ---- ").skip(1) {
        let (title, body) = part.split_once("*/").unwrap_or((part, ""));
        let title = title.trim_end_matches(['-', ' ']).to_string();
        let paragraphs = split_paragraphs(body).iter().map(|part| paragraph(part)).collect::<Vec<_>>();
        let is_said = |part: &Paragraph| !part.text.is_empty() || !part.code.is_empty();
        sections.push(Section { title, paragraphs: paragraphs.into_iter().filter(is_said).collect() });
    }
    Header { about: sentences(first), sections }
}

/// At blank lines, but for those within braces and comments.
fn split_paragraphs(body: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut depth, mut in_comment) = (0, false);
    for line in body.lines() {
        depth += line.matches('{').count() as i32 - line.matches('}').count() as i32;
        in_comment = (in_comment || line.contains("/*")) && !line.contains("*/");
        if line.trim().is_empty() && depth == 0 && !in_comment {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push_str(line);
            part.push('\n');
        }
    }
    parts
}

fn paragraph(part: &str) -> Paragraph {
    let part = part.trim();
    // What makes the header fit for C++, and its end.
    if part.starts_with("#if") || part.starts_with("#endif") || part.is_empty() {
        return Paragraph::default();
    }
    match part.strip_prefix("/*").and_then(|part| part.split_once("*/")) {
        Some((comment, code)) => Paragraph { text: sentences(comment), code: code.trim().to_string() },
        None => Paragraph { text: Vec::new(), code: part.to_string() },
    }
}

/// The paragraphs of a comment, each on one line; one that is indented more than others stands alone, too.
fn sentences(comment: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for line in comment.trim_start_matches("/*").lines() {
        let line = line.trim_start().strip_prefix('*').unwrap_or(line);
        let is_apart = line.starts_with("   ");
        let is_open = found.last().is_some_and(|text| !text.is_empty());
        if (line.trim().is_empty() || is_apart) && is_open {
            found.push(String::new());
        }
        if let Some(text) = found.last_mut() {
            if !text.is_empty() && !line.trim().is_empty() {
                text.push(' ');
            }
            text.push_str(line.trim());
        }
    }
    found.retain(|text| !text.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "/*\n * a.h - what it is.\n *\n * Common.\n */\n#define NOT_THIS\n\
        /* ---- Take, give ---- */\n\n/* A block.\n * Errors: NULL. */\nSNUG_PUBLIC void *snug_a(size_t size) SNUG_NOTHROW\n    \
        SNUG_ALLOC_SIZE(1);\n\n/* Totals. */\nstruct snug_t {\n    int x; /* one */\n\n    int y;\n};\n\n\
        SNUG_PUBLIC int snug_b(void),\n    c;\nSNUG_PUBLIC void snug_c(int (*visit)(void *));\n\n#if 1\n}\n#endif\n";

    #[test]
    fn a_header_is_understood() {
        let header = parse(SAMPLE);
        assert_eq!(header.about, ["a.h - what it is.", "Common."]);
        assert_eq!(header.sections.len(), 1);
        let section = &header.sections[0];
        assert_eq!((section.title.as_str(), section.functions()), ("Take, give", vec!["snug_a", "snug_b", "snug_c"]));
        assert_eq!(section.paragraphs.len(), 3);
        assert_eq!(section.paragraphs[0].text, ["A block. Errors: NULL."]);
        assert_eq!(section.paragraphs[0].prototypes(), ["void *snug_a(size_t size);"]);
        assert!(section.paragraphs[1].has_types() && section.paragraphs[1].code.ends_with("int y;\n};"));
    }
}
