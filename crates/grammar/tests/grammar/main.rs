//! Tests of the grammar: by the table of rules, of reads, over many texts, over random texts.

mod text;

mod rules;

mod effect;
mod reads;

mod corpus;

mod fuzz;
