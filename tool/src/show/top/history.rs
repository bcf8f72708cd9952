//! What a number was at the last looks, as a line of small bars.

use std::collections::VecDeque;

/// So many looks are kept: as many as any terminal is wide.
const KEPT: usize = 400;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

#[derive(Debug, Default)]
pub struct History(VecDeque<f64>);

impl History {
    pub fn add(&mut self, value: f64) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(value);
    }

    /// The last looks, the newest to the right, in so many columns; the largest of them is a whole bar.
    pub fn line(&self, width: usize) -> String {
        let shown = self.0.iter().skip(self.0.len().saturating_sub(width));
        let most = shown.clone().fold(0.0, |most: f64, &value| most.max(value));
        let bar = |&value: &f64| match most {
            0.0 => BARS[0],
            most => BARS[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1],
        };
        let line: String = shown.map(bar).collect();
        let room = width - line.chars().count();
        " ".repeat(room) + &line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_to_the_right() {
        let mut history = History::default();
        assert_eq!(history.line(3), "   ");
        for value in [0.0, 1.0, 4.0, 8.0] {
            history.add(value);
        }
        assert_eq!(history.line(6), "  ▁▁▄█");
        assert_eq!(history.line(2), "▄█");
        for _ in 0..500 {
            history.add(0.0);
        }
        assert_eq!(history.line(3), "▁▁▁");
        assert_eq!(history.0.len(), KEPT);
    }
}
