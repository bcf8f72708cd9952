//! Rows of numbers: sorted by any column, filtered, and fitted to a width, for the screen and for print alike.

use std::cmp::Ordering;

use indicatif::HumanBytes;

use crate::output::grouped;

/// What stands in one place of a table. Numbers stand to the right.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    /// A text whose end matters, as that of "to 8 MiB": it stands to the right.
    Label(String),
    Size(u64),
    Count(u64),
    /// The number of a process or a thread, which is a name more than a number.
    Id(u64),
    /// Bytes more or fewer, each second; None: not known yet.
    Change(Option<f64>),
    /// Occasions each second.
    Rate(Option<f64>),
    Percent(Option<f64>),
    /// A part of the whole, drawn in what room is left.
    Bar(f64),
}

pub struct Row {
    /// By which it is known again in the next look.
    pub key: u64,
    pub values: Vec<Value>,
}

pub struct Table {
    pub columns: &'static [&'static str],
    pub rows: Vec<Row>,
}

/// How a table is looked at.
#[derive(Debug, Clone, Default)]
pub struct Order {
    pub column: usize,
    pub is_reversed: bool,
    pub filter: String,
    /// The row that is marked, and the first on the screen, by their places.
    pub selected: usize,
}

const GAP: usize = 2;
/// A bar that is shorter says nothing.
const BAR_LEAST: usize = 8;

impl Value {
    pub fn shown(&self) -> String {
        match self {
            Value::Text(text) | Value::Label(text) => text.clone(),
            Value::Size(bytes) => HumanBytes(*bytes).to_string(),
            Value::Count(count) => grouped(*count as f64, 0),
            Value::Id(number) => number.to_string(),
            Value::Change(None) | Value::Rate(None) | Value::Percent(None) => "-".to_string(),
            Value::Change(Some(change)) => match change.round() as i64 {
                0 => "0 B/s".to_string(),
                bytes => format!("{}{}/s", if bytes < 0 { '-' } else { '+' }, HumanBytes(bytes.unsigned_abs())),
            },
            Value::Rate(Some(rate)) => format!("{}/s", grouped(*rate, 0)),
            Value::Percent(Some(part)) => format!("{part:.1}"),
            Value::Bar(_) => String::new(),
        }
    }

    fn is_number(&self) -> bool {
        !matches!(self, Value::Text(_) | Value::Bar(_))
    }

    fn number(&self) -> f64 {
        match self {
            Value::Size(number) | Value::Count(number) | Value::Id(number) => *number as f64,
            Value::Change(number) | Value::Rate(number) | Value::Percent(number) => number.unwrap_or(0.0),
            Value::Bar(part) => *part,
            Value::Text(_) | Value::Label(_) => 0.0,
        }
    }

    /// The largest first; texts by the alphabet.
    fn order(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Text(one), Value::Text(other)) | (Value::Label(one), Value::Label(other)) => one.cmp(other),
            _ => other.number().total_cmp(&self.number()),
        }
    }
}

impl Order {
    pub fn by(column: usize) -> Order {
        Order { column, ..Order::default() }
    }

    /// Moves the mark by so many rows, of `count`.
    pub fn step(&mut self, by: isize, count: usize) {
        self.selected = self.selected.saturating_add_signed(by).min(count.saturating_sub(1));
    }

    /// Sorts by the next column, or the one before.
    pub fn next_column(&mut self, by: isize, columns: usize) {
        self.column = (self.column + columns).saturating_add_signed(by) % columns.max(1);
    }
}

impl Table {
    /// The rows to be shown, in their order.
    pub fn ordered(&self, order: &Order) -> Vec<&Row> {
        let wanted = order.filter.to_lowercase();
        let has = |row: &&Row| row.values.iter().any(|value| value.shown().to_lowercase().contains(&wanted));
        let mut rows: Vec<&Row> = self.rows.iter().filter(has).collect();
        rows.sort_by(|one, other| {
            let (one, other) = (one.values.get(order.column), other.values.get(order.column));
            let found = one.zip(other).map_or(Ordering::Equal, |(one, other)| one.order(other));
            if order.is_reversed {
                found.reverse()
            } else {
                found
            }
        });
        rows
    }

    /// The head, then a line for each row, none longer than `width`: columns that do not fit are left out, the last of
    /// them first; a last column of text, or a bar, has what is left.
    pub fn lines(&self, order: &Order, width: usize) -> Vec<String> {
        let rows = self.ordered(order);
        let mut lines = vec![String::new(); rows.len() + 1];
        for (place, title) in self.columns.iter().enumerate() {
            let mark = match (place == order.column, order.is_reversed) {
                (false, _) => "",
                (true, false) => "▾",
                (true, true) => "▴",
            };
            let head = format!("{title}{mark}");
            let is_last = place + 1 == self.columns.len();
            let values: Vec<&Value> = rows.iter().filter_map(|row| row.values.get(place)).collect();
            let is_number = values.iter().any(|value| value.is_number());
            let used = lines[0].chars().count();
            let gap = if used == 0 { 0 } else { GAP };
            let left = width.saturating_sub(used + gap);
            let shown: Vec<String> = values.iter().map(|value| drawn(value, left)).collect();
            let column = shown.iter().map(|text| text.chars().count()).chain([head.chars().count()]).max().unwrap_or(0);
            if column > left && (!is_last || is_number) {
                break;
            }
            for (line, text) in lines.iter_mut().zip([head].iter().chain(&shown)) {
                line.push_str(&" ".repeat(gap));
                line.push_str(&fitted(text, column.min(left), is_number));
            }
        }
        lines.iter().map(|line| line.trim_end().to_string()).collect()
    }
}

fn drawn(value: &Value, left: usize) -> String {
    match value {
        Value::Bar(part) if left >= BAR_LEAST => "█".repeat((part * left as f64).ceil() as usize),
        value => value.shown(),
    }
}

/// Exactly `width` columns of it.
pub fn fitted(text: &str, width: usize, to_the_right: bool) -> String {
    let count = text.chars().count();
    if count > width {
        return text.chars().take(width.saturating_sub(1)).chain(['…']).take(width).collect();
    }
    let room = " ".repeat(width - count);
    if to_the_right {
        room + text
    } else {
        text.to_string() + &room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let row = |key, name: &str, bytes| Row {
            key,
            values: vec![Value::Text(name.into()), Value::Size(bytes), Value::Rate(None), Value::Bar(0.5)],
        };
        Table { columns: &["NAME", "BYTES", "FAULTS", ""], rows: vec![row(1, "ab", 5), row(2, "cd", 2048)] }
    }

    #[test]
    fn sorted_by_any_column() {
        let keys = |order: Order| table().ordered(&order).iter().map(|row| row.key).collect::<Vec<_>>();
        assert_eq!(keys(Order::by(0)), [1, 2]);
        assert_eq!(keys(Order::by(1)), [2, 1]);
        assert_eq!(keys(Order { is_reversed: true, ..Order::by(1) }), [1, 2]);
        assert_eq!(keys(Order { filter: "AB".into(), ..Order::by(1) }), [1]);
        assert_eq!(keys(Order { filter: "nothing".into(), ..Order::by(1) }), [] as [u64; 0]);
    }

    #[test]
    fn counts_have_separators_and_names_have_none() {
        let shown = [Value::Count(1234567), Value::Id(1234567), Value::Rate(Some(98765.4)), Value::Count(999)];
        assert_eq!(shown.map(|value| value.shown()), ["1,234,567", "1234567", "98,765/s", "999"]);
    }

    #[test]
    fn lines_fit() {
        let lines = table().lines(&Order::by(1), 40);
        assert_eq!(lines[0], "NAME    BYTES▾  FAULTS");
        assert_eq!(lines[1], format!("cd    2.00 KiB       -  {}", "█".repeat(8)));
        assert_eq!(lines[2].find("5 B"), Some(11));
        for width in 1..60 {
            assert!(table().lines(&Order::by(0), width).iter().all(|line| line.chars().count() <= width), "{width}");
        }
    }

    #[test]
    fn steps_stay_inside() {
        let mut order = Order::default();
        order.step(-1, 3);
        assert_eq!(order.selected, 0);
        order.step(9, 3);
        assert_eq!(order.selected, 2);
        order.step(1, 0);
        assert_eq!(order.selected, 0);
        order.next_column(-1, 4);
        assert_eq!(order.column, 3);
        order.next_column(1, 4);
        assert_eq!(order.column, 0);
    }
}
