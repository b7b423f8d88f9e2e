//! Tables that read well as they are, and as Markdown.

use std::fmt;

#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Columns after the first are aligned to the right unless their title ends with a space.
    pub fn new<S: Into<String>>(titles: impl IntoIterator<Item = S>) -> Self {
        Self { rows: vec![titles.into_iter().map(Into::into).collect()] }
    }

    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles = &self.rows[0];
        let widths: Vec<usize> = (0..titles.len())
            .map(|column| {
                self.rows.iter().filter_map(move |row| row.get(column)).map(|cell| cell.trim().chars().count())
            })
            .map(|lengths| lengths.max().unwrap_or(0).max(3))
            .collect();
        let to_the_right: Vec<bool> =
            titles.iter().enumerate().map(|(column, title)| column > 0 && !title.ends_with(' ')).collect();
        for (number, row) in self.rows.iter().enumerate() {
            for ((cell, &width), &right) in row.iter().zip(&widths).zip(&to_the_right) {
                let cell = cell.trim();
                if right { write!(f, "| {cell:>width$} ")? } else { write!(f, "| {cell:<width$} ")? }
            }
            writeln!(f, "|")?;
            if number == 0 {
                for (&width, &right) in widths.iter().zip(&to_the_right) {
                    let rule = "-".repeat(width + 1);
                    if right { write!(f, "|{rule}:")? } else { write!(f, "|{rule}-")? }
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

pub fn seconds(value: f64) -> String {
    if value < 10.0 { format!("{value:.3} s") } else { format!("{value:.2} s") }
}

/// Decimal, as storage is rated.
pub fn megabytes_per_second(bytes: u64, seconds: f64) -> String {
    format!("{:.0}", bytes as f64 / seconds / 1e6)
}

/// Binary, as files are.
pub fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["name", "time", "remark "]);
        table.row(["baseline", "1.0 s", "-"]);
        let expected = "| name     |  time | remark |\n|----------|------:|--------|\n| baseline | 1.0 s | -      |\n";
        assert_eq!(table.to_string(), expected);
    }
}
