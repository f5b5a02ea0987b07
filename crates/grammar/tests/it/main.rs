//! Tests of the grammar: by the table of rules, over many texts, over random texts.

mod text;

mod rules;

mod corpus;

mod fuzz;
