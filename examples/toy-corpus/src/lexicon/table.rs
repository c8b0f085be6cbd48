//! Reads the tables in `data`: tab-separated text whose first line names the columns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// A cell without a value. An empty cell is refused, because one tab too many looks the same.
const NO_VALUE: &str = "-";

/// The rows of a table, read when they are first needed.
pub(super) type Table<T> = LazyLock<Vec<T>>;

/// The table of a file in `data`.
macro_rules! table {
    ($file:literal) => {
        std::sync::LazyLock::new(|| {
            super::table::rows($file, include_str!(concat!("../../data/", $file)))
                .unwrap_or_else(|error| panic!("{error}"))
        })
    };
}
pub(super) use table;

/// What a line of a table describes.
pub(super) trait Row: Sized {
    /// The error says what is wrong with the line.
    fn read(line: &Line) -> Result<Self, String>;
}

/// What is one of a few: every variant, after its name in the tables.
pub(super) trait Named: Copy + PartialEq + 'static {
    const NAMES: &'static [(&'static str, Self)];
}

/// An enum that is [`Named`].
macro_rules! named {
    ($(#[$doc:meta])* $enum:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $enum {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $crate::lexicon::table::Named for $enum {
            const NAMES: &'static [(&'static str, Self)] = &[$(($name, Self::$variant),)*];
        }
    };
}
pub(super) use named;

/// The cells of a line, by the names of their columns.
#[derive(Debug)]
pub(super) struct Line {
    cells: BTreeMap<&'static str, &'static str>,
}

impl Line {
    fn new(columns: &[&'static str], line: &'static str) -> Result<Self, String> {
        let cells: Vec<&str> = line.split('\t').map(str::trim).collect();
        if cells.len() != columns.len() {
            let (cells, columns) = (cells.len(), columns.len());
            return Err(format!("the number of cells is {cells}, not {columns}"));
        }
        let cells: BTreeMap<_, _> = columns.iter().copied().zip(cells).collect();
        match cells.iter().find(|(_, text)| text.is_empty()) {
            Some((column, _)) => Err(format!("{column} is empty instead of {NO_VALUE:?}")),
            None => Ok(Self { cells }),
        }
    }

    pub(super) fn optional(&self, column: &str) -> Result<Option<&'static str>, String> {
        match self.cells.get(column) {
            Some(&text) => Ok((text != NO_VALUE).then_some(text)),
            None => Err(format!("the first line has no column {column}")),
        }
    }

    pub(super) fn word(&self, column: &str) -> Result<&'static str, String> {
        self.optional(column)?
            .ok_or_else(|| format!("{column} needs a value"))
    }

    pub(super) fn words<const N: usize>(
        &self,
        columns: [&str; N],
    ) -> Result<[&'static str; N], String> {
        let mut words = [""; N];
        for (word, column) in words.iter_mut().zip(columns) {
            *word = self.word(column)?;
        }
        Ok(words)
    }

    /// Refuses a value where there cannot be one.
    pub(super) fn absent(&self, column: &str, reason: &str) -> Result<(), String> {
        match self.optional(column)? {
            Some(text) => Err(format!("{column} is {text:?}, but {reason}")),
            None => Ok(()),
        }
    }

    pub(super) fn one<T: Named>(&self, column: &str) -> Result<T, String> {
        variant(column, self.word(column)?)
    }

    /// One or more, separated by spaces.
    pub(super) fn some<T: Named>(&self, column: &str) -> Result<Vec<T>, String> {
        let names = self.word(column)?.split_whitespace();
        names.map(|name| variant(column, name)).collect()
    }

    /// None or more, separated by spaces.
    pub(super) fn any<T: Named>(&self, column: &str) -> Result<Vec<T>, String> {
        match self.optional(column)? {
            Some(_) => self.some(column),
            None => Ok(Vec::new()),
        }
    }

    /// How often something is drawn. The bound keeps sums of weights in range.
    pub(super) fn weight(&self, column: &str) -> Result<u32, String> {
        let text = self.word(column)?;
        let weight = text.parse().ok();
        weight
            .filter(|weight| (1..=1000).contains(weight))
            .ok_or_else(|| format!("{column} is {text:?}, not a whole number from 1 to 1000"))
    }
}

fn variant<T: Named>(column: &str, name: &str) -> Result<T, String> {
    let found = T::NAMES.iter().find(|(known, _)| *known == name);
    found.map(|&(_, variant)| variant).ok_or_else(|| {
        let known: Vec<&str> = T::NAMES.iter().map(|&(known, _)| known).collect();
        let known = known.join(", ");
        format!("{column} has {name:?}, which is none of {known}")
    })
}

/// Reads a table, or says in one sentence which line is wrong and why.
pub(super) fn rows<R: Row>(file: &str, text: &'static str) -> Result<Vec<R>, String> {
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    let mut known = BTreeSet::new();
    let mut row = |line| {
        let line = Line::new(&columns, line)?;
        let word = line.optional("english")?;
        if let Some(word) = word.filter(|&word| !known.insert(word)) {
            return Err(format!("an earlier line has {word:?} too"));
        }
        R::read(&line)
    };
    lines
        .zip(2..)
        .map(|(line, number)| row(line).map_err(|error| format!("{file}, line {number}: {error}")))
        .collect()
}
