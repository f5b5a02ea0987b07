//! What the grammar makes of texts: by the table of rules, of many texts, of random ones.

mod text;

mod rules;

mod corpus;

mod fuzz;
