//! `cargo xtask bench plots`: draws tables of `BENCHMARKS.md` as SVG files, for `README.md`.
//!
//! A plot has the figures of its table and nothing else, so that a table that is measured anew is
//! drawn anew; a test fails while a file does not show its table.

use std::fmt::Write;
use std::fs;

use anyhow::{Context, Result, ensure};

use crate::workspace;

const PAGE: &str = "BENCHMARKS.md";
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 300.0;
// The part of the picture that bars are in.
const LEFT: f64 = 20.0;
const TOP: f64 = 76.0;
const BOTTOM: f64 = 262.0;

/// A contender: its name in the table, its name in the picture, its colour.
type Bar = (&'static str, &'static str, &'static str);

/// A table, and how it is drawn.
struct Plot {
    file: &'static str,
    title: &'static str,
    /// The machine and the command, for those who only hear the picture as well.
    about: &'static str,
    /// The beginning of the line behind which the table comes, or of its first line.
    table: &'static str,
    /// Whether contenders are rows. Otherwise they are columns.
    by_rows: bool,
    /// The place of the figure in a cell with several.
    figure: usize,
    bars: &'static [Bar],
}

const PLOTS: &[Plot] = &[
    Plot {
        file: "docs/throughput.svg",
        title: "Transactions per second by number of clients",
        about: "pgbench -S -M prepared, PostgreSQL 15, 4 cores for all; more is better",
        table: "| `-M prepared`, clients | direct | Refrain, `share_servers",
        by_rows: false,
        figure: 0,
        bars: &[
            ("direct", "PostgreSQL directly", "#8a8f98"),
            ("Refrain", "through Refrain", "#2f6fde"),
        ],
    },
    Plot {
        file: "docs/proxy-cpu.svg",
        title: "CPU time of the proxy per transaction in µs, by number of clients",
        about: "pgbench -S -M simple, one worker, shared servers off, 2 cores for all; less is better",
        table: "`-M simple`: TPS / CPU",
        by_rows: true,
        figure: 1,
        bars: &[
            ("pgbouncer", "PgBouncer 1.18", "#8a8f98"),
            ("uring", "Refrain (io_uring)", "#2f6fde"),
        ],
    },
];

/// The figures of a plot: for each number of clients one of each contender.
type Groups = Vec<(String, Vec<f64>)>;

/// Draws all plots. With `write`, puts them into their files.
pub(super) fn run(write: bool) -> Result<String> {
    let page = fs::read_to_string(workspace::root().join(PAGE)).context(PAGE)?;
    let mut written = String::new();
    for plot in PLOTS {
        let drawn = plot.draw(&page)?;
        if write {
            fs::write(workspace::root().join(plot.file), drawn).context(plot.file)?;
        }
        writeln!(written, "{}: {}", plot.file, plot.words(&plot.groups(&page)?))?;
    }
    Ok(written)
}

impl Plot {
    /// Reads the table.
    fn groups(&self, page: &str) -> Result<Groups> {
        let lines = page.lines().skip_while(|line| !line.starts_with(self.table));
        let lines = lines.skip_while(|line| !line.starts_with('|'));
        let rows: Vec<Vec<&str>> = lines
            .take_while(|line| line.starts_with('|'))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        ensure!(rows.len() > 2, "{PAGE} has no table behind {:?}", self.table);
        let (head, body) = (&rows[0], &rows[2..]);
        let place = |(name, ..): &Bar| match self.by_rows {
            true => body.iter().position(|row| row[0] == *name),
            false => head.iter().position(|column| column == name),
        };
        let places: Option<Vec<usize>> = self.bars.iter().map(place).collect();
        let places = places.with_context(|| format!("a contender is not in {:?}", self.table))?;
        let groups = match self.by_rows {
            true => head.iter().enumerate().skip(1).map(|(at, name)| (*name, at)).collect(),
            false => body.iter().enumerate().map(|(at, row)| (row[0], at)).collect::<Vec<_>>(),
        };
        let cell = |group: usize, bar: usize| match self.by_rows {
            true => body[bar][group],
            false => body[group][bar],
        };
        let figure = |text: &str| {
            let mut parts = text.split(if text.contains(" / ") { " / " } else { ", " });
            let part = parts.nth(self.figure).unwrap_or_default().replace(',', "");
            part.parse::<f64>().with_context(|| format!("{text:?} has no such figure"))
        };
        let group = |(name, at): (&str, usize)| {
            let figures: Result<_> = places.iter().map(|bar| figure(cell(at, *bar))).collect();
            Ok((name.replace(" clients", ""), figures?))
        };
        groups.into_iter().map(group).collect()
    }

    /// Returns the figures in words.
    fn words(&self, groups: &Groups) -> String {
        let group = |(name, figures): &(String, Vec<f64>)| {
            let figures = self.bars.iter().zip(figures);
            let figures: Vec<_> =
                figures.map(|((_, bar, _), figure)| format!("{bar} {}", shown(*figure))).collect();
            format!("{name} clients: {}", figures.join(", "))
        };
        groups.iter().map(group).collect::<Vec<_>>().join("; ")
    }

    /// Draws the plot.
    fn draw(&self, page: &str) -> Result<String> {
        let groups = self.groups(page)?;
        let Self { title, about, bars, .. } = self;
        let all = groups.iter().flat_map(|(_, figures)| figures);
        let most = all.copied().fold(f64::MIN_POSITIVE, f64::max);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             aria-labelledby=\"title desc\" font-family=\"sans-serif\" font-size=\"13\">\n\
             <title id=\"title\">{title}</title>\n\
             <desc id=\"desc\">{about}. {}.</desc>\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
             <text x=\"{LEFT}\" y=\"24\" font-size=\"16\" font-weight=\"bold\">{title}</text>\n",
            self.words(&groups)
        );
        for (at, (_, name, colour)) in bars.iter().enumerate() {
            let x = LEFT + 180.0 * at as f64;
            writeln!(
                out,
                "<rect x=\"{x}\" y=\"38\" width=\"12\" height=\"12\" fill=\"{colour}\"/>"
            )?;
            writeln!(out, "<text x=\"{}\" y=\"49\">{name}</text>", x + 18.0)?;
        }
        let room = (WIDTH - 2.0 * LEFT) / groups.len() as f64;
        let wide = (room * 0.8 / bars.len() as f64).min(70.0);
        for (at, (name, figures)) in groups.iter().enumerate() {
            let middle = LEFT + room * (at as f64 + 0.5);
            for (bar, (figure, (_, _, colour))) in figures.iter().zip(*bars).enumerate() {
                let high = (BOTTOM - TOP) * figure / most;
                let (x, y) =
                    (middle + wide * (bar as f64 - bars.len() as f64 / 2.0), BOTTOM - high);
                writeln!(
                    out,
                    "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{high:.1}\" \
                     fill=\"{colour}\"/>\n\
                     <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                    x + 2.0,
                    wide - 4.0,
                    x + wide / 2.0,
                    y - 5.0,
                    shown(*figure)
                )?;
            }
            writeln!(
                out,
                "<text x=\"{middle:.1}\" y=\"280\" text-anchor=\"middle\">{name} clients</text>"
            )?;
        }
        writeln!(
            out,
            "<text x=\"{LEFT}\" y=\"296\" font-size=\"11\" fill=\"#555555\">{about}</text>\n</svg>"
        )?;
        Ok(out)
    }
}

/// Returns a figure with three digits or more, and with a mark between thousands.
fn shown(figure: f64) -> String {
    if figure < 1000.0 {
        return format!("{figure:.1}");
    }
    let whole = figure.round() as u64;
    format!("{},{:03}", whole / 1000, whole % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plots_show_the_tables_of_the_page() {
        let page = fs::read_to_string(workspace::root().join(PAGE)).unwrap();
        for plot in PLOTS {
            let drawn = fs::read_to_string(workspace::root().join(plot.file)).unwrap_or_default();
            let due = plot.draw(&page).unwrap();
            assert!(drawn == due, "{}: run `cargo xtask bench plots --write`", plot.file);
        }
    }

    #[test]
    fn a_plot_has_its_figures_in_words_as_well() {
        let page = "| `-M prepared`, clients | direct | Refrain, `share_servers = \"off\"` | Refrain |\n\
                    |---|--:|--:|--:|\n| 16 | 94,870, 23.0 | 1, 2 | 7,077, 15.8, 10.6 |\n";
        let plot = &PLOTS[0];
        assert_eq!(plot.groups(page).unwrap(), [("16".to_owned(), vec![94_870.0, 7_077.0])]);
        let drawn = plot.draw(page).unwrap();
        assert!(drawn.contains("16 clients: PostgreSQL directly 94,870, through Refrain 7,077."));
        assert!(plot.groups("").is_err());
    }
}
