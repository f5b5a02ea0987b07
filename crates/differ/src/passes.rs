//! What may differ in the order of replies, each with its reason.

/// Differences that are let pass without a [`crate::mask::Mask`], because they concern the order of
/// frames. Most end the episode, since the sessions may have parted.
pub const PASSES: [(&str, &str); 14] = [
    (
        "describe-stale",
        "PostgreSQL sends 't' before the error of a stale statement, a Parse put in \
      front by the proxy fails without it (E44)",
    ),
    (
        "aborted-describe",
        "in an aborted transaction a Bind says first that its parameters are wrong, and Describe of a statement without \
      rows succeeds; a Parse put in front cannot, nor is it known what Describe of an unnamed one, or of EXECUTE, would say",
    ),
    (
        "gone-describe",
        "Describe of a statement without rows succeeds though what it was analysed against is gone, \
      a Parse put in front cannot",
    ),
    (
        "gone-bind",
        "a Bind or EXECUTE whose parameters or portal are wrong says so before it is seen that what the statement was analysed \
      against is gone, and a Parse of EXECUTE does not look; a Parse put in front sees that first",
    ),
    (
        "plan-choice",
        "with the parameters' values PostgreSQL may see an error as it plans, in Bind or EXPLAIN; from the sixth use on \
      it may plan without them, and uses are counted per session (E62)",
    ),
    (
        "copy-intruder",
        "a message amid COPY data ends the session with its type in the words: of two pipelined ones the first \
      may be one that the proxy put in front",
    ),
    (
        "pipeline-warning",
        "that there is no transaction block is neither warned of nor a reason to refuse where a statement came before \
      in the pipeline, be it one of the proxy's",
    ),
    ("stale-plan", "0A000 on one side only: feature `stale`, another server has no old plan (E67)"),
    (
        "aside-pipeline",
        "a command that must stand alone is refused behind a statement that the proxy prepares amid the same pipeline \
      under the settings of its Parse: that takes commands (E57)",
    ),
    (
        "late-snapshot",
        "a statement that was prepared before a change of the schema is analysed anew when it is described, with a \
      snapshot; one that was prepared behind it on another server is not",
    ),
    (
        "late-folding",
        "a plan for all values folds no constants: an error in one comes behind the columns, or not at all where no row \
        needs it (docs/autoprepare.md)",
    ),
    (
        "rows-before-error",
        "how many rows come before the same error in a value is up to the plan, and one for all values may be another \
        (docs/autoprepare.md)",
    ),
    (
        "beyond-limit",
        "whether what is selected is computed for rows beyond a LIMIT, or that another condition leaves out, is up to \
        the plan, and one for all values may be another (docs/autoprepare.md)",
    ),
    (
        "lent-in-vain",
        "a query string of several commands is refused as a whole where a statement that one of them executes cannot be \
        parsed again; directly the commands before it run first (docs/decisions/0018)",
    ),
];
