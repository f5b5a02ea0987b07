//! Templates: statements with holes, made of random parts.

use super::holes::Hole;
use crate::rng::Rng;

/// A part of a template.
#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Hole(Hole),
}

/// A statement with holes for literals.
#[derive(Clone, Debug, Default)]
pub(super) struct Template(Vec<Part>);

impl Template {
    /// Returns the statement with a literal in each hole.
    pub(super) fn fill(&self, rng: &mut Rng) -> String {
        let fill = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Hole(hole) => hole.fill(rng),
        };
        self.0.iter().map(fill).collect()
    }

    /// Appends text, in which `{i}` and the like stand for holes.
    pub(super) fn add(&mut self, text: &str) {
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            self.text(before);
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            match hole(name) {
                Some(hole) => self.0.push(Part::Hole(hole)),
                None => self.text(&format!("{{{name}}}")),
            }
            rest = after;
        }
        self.text(rest);
    }

    fn text(&mut self, text: &str) {
        if let Some(Part::Text(last)) = self.0.last_mut() {
            last.push_str(text);
        } else {
            self.0.push(Part::Text(text.to_owned()));
        }
    }
}

fn hole(name: &str) -> Option<Hole> {
    let all = [
        ("i", Hole::Int),
        ("n", Hole::Number),
        ("c", Hole::Count),
        ("t", Hole::Text),
        ("e", Hole::Escaped),
        ("like", Hole::Like),
        ("re", Hole::Regex),
        ("d", Hole::Date),
        ("ts", Hole::Moment),
        ("iv", Hole::Interval),
        ("tz", Hole::Zone),
        ("arr", Hole::Array),
        ("js", Hole::Json),
        ("u", Hole::Uuid),
        ("l", Hole::Label),
        ("b", Hole::Bytes),
        ("r", Hole::Range),
        ("bits", Hole::Bits),
        ("q", Hole::Quoted),
        ("net", Hole::Inet),
    ];
    all.iter().find(|(known, _)| *known == name).map(|(_, hole)| *hole)
}

/// Expressions over `x`, a row of `shr.q`, by their type.
const INTS: [&str; 16] = [
    "{i}",
    "x.i",
    "x.id + {i}",
    "x.i * {i}",
    "x.big - {i}",
    "{i} / nullif(x.i, 0)",
    "{q}::int",
    "length({t})",
    "cast({i} as smallint)",
    "coalesce(x.i, {i})",
    "case when x.i > {i} then {i} else x.id end",
    "abs({i})",
    "x.arr[{i}]",
    "greatest(x.i, {i}, {i})",
    "extract(year from {d}::date)::int",
    "(select count(*) from shr.q y where y.i < {i})::int",
];
const TEXTS: [&str; 16] = [
    "{t}",
    "x.t",
    "x.t || {t}",
    "{e}",
    "upper({t})",
    "substr({t}, {c})",
    "coalesce(x.t, {t})",
    "{t}::varchar(3)",
    "{t}::char(4)",
    "case when x.t = {t} then {t} else x.c6 end",
    "replace(x.t, {t}, {t})",
    "x.c6",
    "cast({i} as text)",
    "to_char({n}, '999D99')",
    "concat({t}, {i}, x.t)",
    "x.v5 || {t}",
];
const OTHERS: [&str; 34] = [
    "{n}",
    "x.n + {n}",
    "{n}::numeric(8,2)",
    "{q}::numeric",
    "x.f * {n}",
    "{n}::float8",
    "{n}::float4",
    "round({n}, {c})",
    "{d}::date",
    "date {d}",
    "x.d + {c}",
    "x.d - {d}::date",
    "{ts}::timestamp",
    "{ts}::timestamptz",
    "x.ts + {iv}::interval",
    "{iv}::interval",
    "interval {iv}",
    "{ts}::timestamptz at time zone {tz}",
    "{arr}::int[]",
    "x.arr || {i}",
    "array[{i}, {i}]",
    "{js}::jsonb",
    "{js}::jsonb -> 'a'",
    "x.js ->> {t}",
    "{u}::uuid",
    "{l}::shr.mood",
    "{b}::bytea",
    "{r}::int4range",
    "b{bits}",
    "{i}::shr.small",
    "{t}::shr.word",
    "{net}::inet",
    "{t}::name",
    "null",
];
const CONDITIONS: [&str; 26] = [
    "x.id = {i}",
    "x.id = {i}",
    "x.id in ({i}, {i}, {i})",
    "x.i > {i}",
    "x.i between {i} and {i}",
    "x.t = {t}",
    "x.t like {like}",
    "x.t ilike {like}",
    "x.t ~ {re}",
    "x.c6 = {t}",
    "x.n < {n}",
    "x.f >= {n}",
    "x.d = {d}",
    "x.ts < {ts}",
    "x.arr @> {arr}",
    "{i} = any(x.arr)",
    "x.js @> {js}",
    "x.mood = {l}",
    "x.w = {t}",
    "x.s = {i}",
    "x.u = {u}",
    "x.b = {b}",
    "x.t is not distinct from {t}",
    "x.t > {t} collate \"C\"",
    "exists (select from shr.p p where p.q = x.id and p.k = {i})",
    "(x.i, x.t) < ({i}, {t})",
];

fn expression<'a>(rng: &mut Rng) -> &'a str {
    match rng.below(3) {
        0 => rng.pick::<&str>(&INTS),
        1 => rng.pick::<&str>(&TEXTS),
        _ => rng.pick::<&str>(&OTHERS),
    }
}

fn condition(rng: &mut Rng) -> String {
    let one = *rng.pick(&CONDITIONS);
    match rng.below(6) {
        0 => format!("{one} and {}", rng.pick(&CONDITIONS)),
        1 => format!("({one} or {})", rng.pick(&CONDITIONS)),
        2 => format!("not {one}"),
        _ => one.to_owned(),
    }
}

/// Returns a template that reads, or one that writes to the tables of schema `own`.
pub(super) fn random(rng: &mut Rng, own: &str) -> Template {
    let mut template = Template::default();
    let text = match rng.weighted(&[30, 12, 10, 8, 8, 8, 6, 18]) {
        0 => plain(rng),
        1 => set_operation(rng),
        2 => aggregate(rng),
        3 => window(rng),
        4 => common_table(rng),
        5 => join(rng),
        6 => bare(rng),
        _ => write(rng).replace("{own}", own),
    };
    template.add(&text);
    template
}

/// Returns a query of one table that sorts its rows by their key.
fn plain(rng: &mut Rng) -> String {
    let columns: Vec<&str> = (0..1 + rng.below(4)).map(|_| expression(rng)).collect();
    let limit = ["", " limit {c}", " limit {c} offset {c}"][rng.weighted(&[6, 1, 1])];
    let (columns, condition) = (columns.join(", "), condition(rng));
    format!("select x.id, {columns} from shr.q x where {condition} order by x.id{limit}")
}

fn bare(rng: &mut Rng) -> String {
    let columns: Vec<String> = (0..1 + rng.below(3))
        .map(|_| expression(rng))
        .filter(|text| !text.contains("x."))
        .map(str::to_owned)
        .collect();
    if columns.is_empty() {
        "select {i}, {t}".to_owned()
    } else {
        format!("select {}", columns.join(", "))
    }
}

/// Returns a set operation. Both sides have a key and a text, and the order has both columns.
fn set_operation(rng: &mut Rng) -> String {
    let word = *rng.pick(&["union", "union all", "except", "intersect"]);
    let (left, right) = (condition(rng), condition(rng));
    let (one, other) = (*rng.pick(&INTS), *rng.pick(&INTS));
    format!(
        "select x.id, ({one})::text as a from shr.q x where {left} {word} \
         select x.id, ({other})::text from shr.q x where {right} order by 1, 2"
    )
}

fn aggregate(rng: &mut Rng) -> String {
    let condition = condition(rng);
    let having = ["", " having count(*) > {c}"][rng.below(2)];
    let what = *rng.pick(&[
        "count(*), sum(x.i), max(x.t)",
        "count(distinct x.t), min(x.d), sum(x.n)",
        "string_agg(x.t, {t} order by x.id)",
        "array_agg(x.i order by x.id), bool_or(x.i > {i})",
        "count(*) filter (where x.i > {i}), avg(x.i)",
        "sum(x.i + {i}), max(coalesce(x.t, {t}))",
    ]);
    match rng.below(3) {
        0 => format!("select {what} from shr.q x where {condition}"),
        1 => format!(
            "select x.i % 3, {what} from shr.q x where {condition} group by x.i % 3{having} order by 1"
        ),
        _ => format!(
            "select x.t, {what} from shr.q x where {condition} group by x.t{having} order by x.t"
        ),
    }
}

fn window(rng: &mut Rng) -> String {
    let condition = condition(rng);
    let what = *rng.pick(&[
        "row_number() over (order by x.id)",
        "lag(x.t, {c}, {t}) over (order by x.id)",
        "sum(x.i) over (order by x.id rows between {c} preceding and current row)",
        "rank() over (partition by x.i % 2 order by x.id)",
        "nth_value(x.i, {c}) over (order by x.id)",
        "ntile({c}) over (order by x.id)",
    ]);
    format!("select x.id, {what} from shr.q x where {condition} order by x.id")
}

fn common_table(rng: &mut Rng) -> String {
    let (condition, column) = (condition(rng), *rng.pick(&TEXTS));
    match rng.below(3) {
        0 => format!(
            "with w as (select x.id, {column} as a from shr.q x where {condition}) \
             select id, a, {{t}} from w order by id"
        ),
        1 => "with recursive w(k) as (select {c} union all select k + 1 from w where k < {c} + 4) \
              select k, k * {i} from w order by k"
            .to_owned(),
        _ => format!(
            "with w as materialized (select x.id from shr.q x where {condition}) \
             select count(*), max(id) + {{i}} from w"
        ),
    }
}

fn join(rng: &mut Rng) -> String {
    let (condition, column) = (condition(rng), expression(rng));
    let how = *rng.pick(&["join", "left join"]);
    match rng.below(3) {
        0 => format!(
            "select x.id, p.id, {column} from shr.q x {how} shr.p p on p.q = x.id and p.k > {{i}} \
             where {condition} order by x.id, p.id"
        ),
        1 => format!(
            "select x.id, v.a, v.b from shr.q x {how} (values ({{i}}, {{t}}), ({{i}}, {{t}})) v(a, b) \
             on v.a = x.id where {condition} order by 1, 2, 3"
        ),
        _ => format!(
            "select x.id, l.k from shr.q x, lateral (select p.k + {{i}} as k from shr.p p \
             where p.q = x.id order by p.id limit {{c}}) l where {condition} order by 1, 2"
        ),
    }
}

/// Returns a command that writes to the client's own tables, or a query of one of them. Results
/// have at most one row, or are sorted.
fn write(rng: &mut Rng) -> String {
    (*rng.pick(&[
        "insert into {own}.w (id, v, n) values ({i}, {t}, {n})",
        "insert into {own}.w (id, v) values ({i}, {t}), ({i}, {t}) on conflict do nothing",
        "insert into {own}.w (id, v) values ({i}, {t}) on conflict (id) do update \
         set v = excluded.v || {t}, n = {own}.w.n + {n} returning id, v, n",
        "insert into {own}.w (id, v5) values ({i}, {t}) returning *",
        "insert into {own}.k (s, v) values ({i}, {t})",
        "insert into {own}.k (v, n, b) values ({t}, {n}, {i}), ({t}, {n}, {i})",
        "insert into {own}.k (v, l, f) values ({t}, {l}, {n}) returning id, v",
        "insert into {own}.k (s) select {i} where {c} > 0",
        "select last_value, is_called from {own}.k_id_seq where last_value > {c}",
        "insert into {own}.w (id, s, m) values ({i}, {i}, {l})",
        "insert into {own}.w (id, w) select {i}, {t} where {i} > {i}",
        "insert into {own}.w (id, d, j) values ({i}, {d}, {js}) on conflict (id) do nothing",
        "insert into {own}.w select x.id + {i}, x.t from shr.q x where x.id = {i} \
         on conflict do nothing",
        "update {own}.w set v = {t} where id = {i}",
        "update {own}.w set n = n * {n}, d = {d} where id = {i} returning id, n, d",
        "update {own}.w set s = {i} where id = {i}",
        "update {own}.w set w = {t} where v = {t}",
        "update {own}.w set v5 = {t}, a = {arr} where id between {i} and {i}",
        "delete from {own}.w where id = {i} returning id, v",
        "delete from {own}.w where v like {like}",
        "with u as (update {own}.w set n = {n} where id > {i} returning id, n) \
         select id, n, {t} from u order by id",
        "merge into {own}.w t using (values ({i}, {t})) s(id, v) on t.id = s.id \
         when matched then update set v = s.v || {t} when not matched then insert (id, v) \
         values (s.id, {t})",
        "select id, v, n, d, v5, s, w, m, a, j from {own}.w order by id",
    ]))
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_filled_and_braces_that_are_none_stay() {
        let mut template = Template::default();
        template.add("select {c}, {x} from t");
        let text = template.fill(&mut Rng::new(1));
        assert!(text.starts_with("select ") && text.ends_with(", {x} from t"), "{text}");
    }

    #[test]
    fn every_template_has_only_holes_that_there_are() {
        let mut rng = Rng::new(7);
        for _ in 0..5000 {
            let template = random(&mut rng, "c1");
            let texts: String = template
                .0
                .iter()
                .filter_map(|part| match part {
                    Part::Text(text) => Some(text.as_str()),
                    Part::Hole(_) => None,
                })
                .collect();
            assert!(!texts.contains('{'), "{texts}");
        }
    }
}
