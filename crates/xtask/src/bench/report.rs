//! The report of a benchmark: tables in Markdown.

use std::fmt::Write as _;

use super::launch::{Contender, Driver};
use super::pgbench::{Load, Mode, Workload};

const MODES: [Mode; 3] = [Mode::Simple, Mode::Extended, Mode::Prepared];
/// Numbers of clients in the list of ratios to PgBouncer.
const ISSUE_CLIENTS: [u32; 3] = [16, 64, 256];
/// The proxies in that list: one thread with each driver.
const ONE_THREAD: [Contender; 2] =
    [Contender::refrain(Driver::Uring, 1), Contender::refrain(Driver::Epoll, 1)];

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) round: u32,
    pub(super) load: Load,
    pub(super) contender: Contender,
    /// `None` if the run failed.
    pub(super) figures: Option<Figures>,
}

/// The figures of one measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    /// Transactions per second.
    pub(super) tps: f64,
    /// Average latency that the client sees.
    pub(super) latency_ms: f64,
    /// CPU time of the proxy per transaction, in microseconds.
    pub(super) cpu_us: Option<f64>,
    /// CPU time of all processes of PostgreSQL per transaction, in microseconds.
    pub(super) server_cpu_us: Option<f64>,
}

/// A choice of one figure.
pub(super) type Pick = fn(&Figures) -> Option<f64>;

pub(super) const TPS: Pick = |figures| Some(figures.tps);
pub(super) const CPU: Pick = |figures| figures.cpu_us;
pub(super) const SERVER_CPU: Pick = |figures| figures.server_cpu_us;

/// All measurements.
pub(super) struct Report<'a> {
    pub(super) rows: &'a [Row],
    pub(super) clients: &'a [u32],
    pub(super) rounds: u32,
}

impl Report<'_> {
    /// Returns the whole report.
    pub(super) fn text(&self, seconds: u32) -> String {
        let rounds = self.rounds;
        let mut text = format!(
            "`pgbench -n -S`, scale 10, pool of 20 servers, rounds: {rounds}, each measurement \
             {seconds} s, contenders in turns; medians. `uring` and `epoll` are Refrain with one \
             worker, `uring-2` with two; `direct` is PostgreSQL alone. CPU is that of the proxy's \
             process, connecting included.\n"
        );
        for mode in MODES {
            self.by_clients(&mut text, mode);
        }
        self.others(&mut text);
        self.against_pgbouncer(&mut text);
        self.prepared_against_extended(&mut text);
        self.threads(&mut text);
        self.protocols(&mut text);
        self.raw(&mut text);
        text
    }

    fn contenders(&self) -> Vec<Contender> {
        let mut found = Vec::new();
        for row in self.rows.iter().filter(|row| row.round == 0) {
            if !found.contains(&row.contender) {
                found.push(row.contender);
            }
        }
        found
    }

    fn values(&self, load: &Load, contender: Contender, pick: Pick) -> Vec<(u32, f64)> {
        let rows = self.rows.iter().filter(|row| row.load == *load && row.contender == contender);
        rows.filter_map(|row| Some((row.round, pick(row.figures.as_ref()?)?))).collect()
    }

    fn median(&self, load: &Load, contender: Contender, pick: Pick) -> Option<f64> {
        median(self.values(load, contender, pick).into_iter().map(|(_, value)| value).collect())
    }

    /// Returns the median of the ratios of each round.
    fn ratio(&self, of: (&Load, Contender), to: (&Load, Contender), pick: Pick) -> Option<f64> {
        let to = self.values(to.0, to.1, pick);
        let ratios = self.values(of.0, of.1, pick).into_iter().filter_map(|(round, value)| {
            let (_, other) = to.iter().find(|(other, _)| *other == round)?;
            Some(value / other)
        });
        median(ratios.collect())
    }

    fn tps_and_cpu(&self, load: &Load, contender: Contender) -> Option<String> {
        let tps = self.median(load, contender, TPS)?;
        let cpu = self.median(load, contender, CPU);
        Some(cpu.map_or(format!("{tps:.0}"), |cpu| format!("{tps:.0} / {cpu:.2}")))
    }

    fn by_clients(&self, text: &mut String, mode: Mode) {
        let lines = self.contenders().into_iter().map(|contender| {
            let cells = self
                .clients
                .iter()
                .map(|clients| self.tps_and_cpu(&select(mode, *clients), contender));
            (contender.name(), cells.collect())
        });
        let heads = self.clients.iter().map(|clients| format!("{clients} clients"));
        let title = format!("`-M {}`: TPS / CPU µs per transaction", mode.name());
        table(text, &title, "", &heads.collect::<Vec<_>>(), lines);
    }

    /// Appends the tables of the workloads that have a fixed number of clients.
    fn others(&self, text: &mut String) {
        let load_of =
            |workload| self.rows.iter().map(|row| row.load).find(|load| load.workload == workload);
        let titles = [
            (
                Workload::Statements,
                "500 distinct prepared statements, at most 100 on a server, 16 clients",
            ),
            (Workload::Connect, "A connection for each transaction (`-C`), 16 clients"),
        ];
        for (workload, title) in titles {
            let Some(load) = load_of(workload) else { continue };
            let lines = self
                .contenders()
                .into_iter()
                .map(|contender| (contender.name(), vec![self.tps_and_cpu(&load, contender)]));
            table(text, title, "", &["TPS / CPU µs".to_owned()], lines);
        }
    }

    fn against_pgbouncer(&self, text: &mut String) {
        let mut lines = Vec::new();
        for mode in [Mode::Simple, Mode::Extended] {
            for contender in self.contenders() {
                if matches!(contender, Contender::Direct | Contender::Pgbouncer) {
                    continue;
                }
                let cells = self.clients.iter().map(|clients| {
                    let load = select(mode, *clients);
                    let ratio =
                        |pick| self.ratio((&load, contender), (&load, Contender::Pgbouncer), pick);
                    Some(format!("{:.2} / {:.2}", ratio(TPS)?, ratio(CPU)?))
                });
                lines.push((format!("{} {}", mode.name(), contender.name()), cells.collect()));
            }
        }
        let heads: Vec<_> = self.clients.iter().map(|clients| format!("{clients}")).collect();
        let title = "Against PgBouncer in the same round: TPS / CPU per transaction, as ratios";
        table(text, title, "clients", &heads, lines.into_iter());
        text.push('\n');
        for mode in [Mode::Simple, Mode::Extended] {
            for (contender, clients) in pairs(&ONE_THREAD, &ISSUE_CLIENTS) {
                let load = select(mode, clients);
                let ratio =
                    |pick| self.ratio((&load, contender), (&load, Contender::Pgbouncer), pick);
                if let (Some(tps), Some(cpu)) = (ratio(TPS), ratio(CPU)) {
                    let (mode, name) = (mode.name(), contender.name());
                    let (cpu, tps) = (percent(cpu), percent(tps));
                    let _ = writeln!(
                        text,
                        "- {mode}, {clients} clients, {name}, against PgBouncer: \
                         CPU per transaction {cpu}, TPS {tps}"
                    );
                }
            }
        }
    }

    fn prepared_against_extended(&self, text: &mut String) {
        let proxies = self.contenders().into_iter();
        let proxies = proxies.filter(|contender| *contender != Contender::Pgbouncer);
        let lines = proxies.map(|contender| {
            let cells = self.clients.iter().map(|clients| {
                let (of, to) = (select(Mode::Prepared, *clients), select(Mode::Extended, *clients));
                let ratio = |pick| self.ratio((&of, contender), (&to, contender), pick);
                let cpu = ratio(CPU).map(|cpu| format!(" / {cpu:.2}"));
                Some(format!("{:.2}{}", ratio(TPS)?, cpu.unwrap_or_default()))
            });
            (contender.name(), cells.collect())
        });
        let heads: Vec<_> = self.clients.iter().map(|clients| format!("{clients}")).collect();
        let title = "Prepared against extended: TPS / CPU per transaction, as ratios";
        table(text, title, "clients", &heads, lines);
    }

    /// Appends a table of threads by clients, in the shape of ProxySQL's published figures.
    fn threads(&self, text: &mut String) {
        let shapes = [1, 2].map(|workers| Contender::refrain(Driver::Uring, workers));
        let clients: Vec<_> = self.clients.iter().copied().filter(|count| *count <= 16).collect();
        let lines = pairs(&shapes, &clients).map(|(contender, clients)| {
            let cells = MODES.map(|mode| self.tps_and_cpu(&select(mode, clients), contender));
            (format!("{}, {clients}", contender.name()), cells.to_vec())
        });
        let heads = MODES.map(|mode| mode.name().to_owned());
        let title = "One and two threads (io_uring), few clients: TPS / CPU µs";
        table(text, title, "threads, clients", &heads, lines);
    }

    /// Appends a table of TPS, clients by protocol, in the shape of PgCat's published figures.
    fn protocols(&self, text: &mut String) {
        let shown = [1, 10, 100, 1000];
        let shown = shown.into_iter().filter(|clients| self.clients.contains(clients));
        let columns: Vec<_> = pairs(&MODES, &self.contenders()).collect();
        let filled = columns.iter().copied().filter(|(mode, contender)| {
            self.clients.iter().any(|c| self.median(&select(*mode, *c), *contender, TPS).is_some())
        });
        let columns: Vec<_> = filled.collect();
        let heads: Vec<_> =
            columns.iter().map(|(mode, c)| format!("{} {}", mode.name(), c.name())).collect();
        let lines = shown.map(|clients| {
            let cells = columns.iter().map(|(mode, contender)| {
                let tps = self.median(&select(*mode, clients), *contender, TPS)?;
                Some(format!("{tps:.0}"))
            });
            (clients.to_string(), cells.collect())
        });
        table(text, "Protocols by clients: TPS", "clients", &heads, lines);
    }

    fn raw(&self, text: &mut String) {
        text.push_str("\nEvery measurement:\n\n```csv\n");
        text.push_str(
            "round,workload,mode,clients,contender,tps,latency_ms,cpu_us,postgres_cpu_us\n",
        );
        for Row { round, load, contender, figures } in self.rows {
            let Load { workload, mode, clients } = load;
            let (workload, name) = (format!("{workload:?}").to_lowercase(), contender.name());
            let _ = write!(text, "{round},{workload},{},{clients},{name}", mode.name());
            let _ = match figures {
                None => writeln!(text, ",failed,,,"),
                Some(Figures { tps, latency_ms, cpu_us, server_cpu_us }) => {
                    let micros = |value: &Option<f64>| {
                        value.map_or(String::new(), |value| format!("{value:.2}"))
                    };
                    let (own, server) = (micros(cpu_us), micros(server_cpu_us));
                    writeln!(text, ",{tps:.0},{latency_ms:.3},{own},{server}")
                }
            };
        }
        text.push_str("```\n");
    }
}

fn select(mode: Mode, clients: u32) -> Load {
    Load { workload: Workload::Select, mode, clients }
}

fn pairs<'a, A: Copy, B: Copy>(left: &'a [A], right: &'a [B]) -> impl Iterator<Item = (A, B)> {
    left.iter().flat_map(move |a| right.iter().map(move |b| (*a, *b)))
}

/// Returns a ratio as a signed percentage.
fn percent(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    format!("{change:+.0} %")
}

/// Returns the median.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = values.get(middle)?;
    let even = values.len().is_multiple_of(2);
    Some(if even { (values[middle - 1] + upper) / 2.0 } else { *upper })
}

/// A line of a table: its name and its cells.
type Line = (String, Vec<Option<String>>);

/// Appends a table without its empty lines. A table whose lines are all empty is left out.
pub(super) fn table(
    text: &mut String,
    title: &str,
    corner: &str,
    heads: &[String],
    lines: impl Iterator<Item = Line>,
) {
    let full = lines.filter(|(_, cells)| cells.iter().any(Option::is_some));
    let full: Vec<_> = full.collect();
    if full.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{title}:\n\n| {corner} | {} |", heads.join(" | "));
    let _ = writeln!(text, "|---|{}", "--:|".repeat(heads.len()));
    for (name, cells) in full {
        let cells: Vec<_> = cells.into_iter().map(|cell| cell.unwrap_or("–".into())).collect();
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(round: u32, contender: Contender, tps: f64, cpu_us: f64) -> Row {
        let figures = Figures { tps, latency_ms: 1.0, cpu_us: Some(cpu_us), server_cpu_us: None };
        Row { round, load: select(Mode::Simple, 16), contender, figures: Some(figures) }
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let [uring, _] = ONE_THREAD;
        // The machine was busy in the second round.
        let rows = [
            row(0, uring, 200.0, 8.0),
            row(0, Contender::Pgbouncer, 100.0, 10.0),
            row(1, uring, 20.0, 80.0),
            row(1, Contender::Pgbouncer, 10.0, 100.0),
        ];
        let report = Report { rows: &rows, clients: &[16], rounds: 2 };
        let load = select(Mode::Simple, 16);
        let ratio = |pick| report.ratio((&load, uring), (&load, Contender::Pgbouncer), pick);
        assert_eq!((ratio(TPS), ratio(CPU)), (Some(2.0), Some(0.8)));
        let text = report.text(1);
        assert!(text.contains("| uring | 110 / 44.00 |"), "{text}");
        assert!(
            text.contains("uring, against PgBouncer: CPU per transaction -20 %, TPS +100 %"),
            "{text}"
        );
        assert!(text.contains("0,select,simple,16,uring,200,1.000,8.00,\n"), "{text}");
    }

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_two() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
    }
}
