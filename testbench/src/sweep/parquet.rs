//! The table of a sweep as a Parquet file, for programs that read tables with types.
//!
//! | Column | Type |
//! |---|---|
//! | an axis | integers, floats or strings: the first that holds all its values |
//! | `cycles` | integers |
//! | a metric | floats |
//! | `state`, `reason` | strings |
//!
//! A value that does not exist is null. The same table gives the same bytes.

use std::sync::Arc;

use ::parquet::basic::{LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::types::Type;

use super::table::{Row, Table};
use crate::report::saved::{CYCLES, launch_of};

/// One column with the values of all rows.
#[derive(Debug, PartialEq)]
enum Column {
    Integers(Vec<Option<i64>>),
    Floats(Vec<Option<f64>>),
    Strings(Vec<Option<String>>),
}

impl Table {
    /// The table as the bytes of a Parquet file, without compression.
    ///
    /// # Errors
    /// If the library refuses a column. The text says why.
    pub fn parquet(&self) -> Result<Vec<u8>, String> {
        file(&self.typed_columns()).map_err(|error| error.to_string())
    }

    /// The columns of the CSV file, in its order, each with its name.
    fn typed_columns(&self) -> Vec<(String, Column)> {
        let axes = self.axes.iter().enumerate().map(|(n, axis)| {
            let values = self.rows.iter().map(|row| row.point[n].1.as_str());
            (axis.name.clone(), settings(&values.collect::<Vec<_>>()))
        });
        let columns = self.columns.iter().enumerate();
        let columns = columns.map(|(n, name)| (name.clone(), numbers(name, &self.rows, n)));
        let word = |of: fn(&Row) -> &str| {
            let words = self
                .rows
                .iter()
                .map(|row| Some(of(row).to_owned()).filter(|word| !word.is_empty()));
            Column::Strings(words.collect())
        };
        let last = [
            ("state".to_owned(), word(|row| row.status.words().0)),
            ("reason".to_owned(), word(|row| row.status.words().1)),
        ];
        axes.chain(columns).chain(last).collect()
    }
}

/// The column of an axis.
fn settings(values: &[&str]) -> Column {
    let plain = || values.iter().map(|value| value.replace('_', ""));
    let integers: Result<Vec<_>, _> = plain().map(|value| value.parse().map(Some)).collect();
    if let Ok(integers) = integers {
        return Column::Integers(integers);
    }
    let floats: Result<Vec<_>, _> = plain().map(|value| value.parse().map(Some)).collect();
    match floats {
        Ok(floats) => Column::Floats(floats),
        Err(_) => Column::Strings(values.iter().map(|value| Some((*value).to_owned())).collect()),
    }
}

/// The column of a metric. Only the cycles are integers: the type of a metric must not depend on its values.
fn numbers(name: &str, rows: &[Row], column: usize) -> Column {
    let numbers = rows
        .iter()
        .map(|row| row.values.get(column).and_then(|value| value.number()));
    match launch_of(name).map_or(name, |(_, name)| name) {
        // An `f64` holds every count of cycles that a run can reach.
        CYCLES => Column::Integers(numbers.map(|number| number.map(|number| number as i64)).collect()),
        _ => Column::Floats(numbers.collect()),
    }
}

/// The bytes of a file with these columns.
fn file(columns: &[(String, Column)]) -> Result<Vec<u8>, ParquetError> {
    let fields: Result<Vec<_>, _> = columns
        .iter()
        .map(|(name, column)| field(name, column).map(Arc::new))
        .collect();
    let schema = Type::group_type_builder("sweep").with_fields(fields?).build()?;
    let properties = WriterProperties::builder()
        .set_created_by(format!("warpwave {}", env!("CARGO_PKG_VERSION")))
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (_, column) in columns {
        let to = group.next_column()?;
        column.write(to.ok_or_else(|| ParquetError::General("a column has no writer".to_owned()))?)?;
    }
    group.close()?;
    writer.into_inner()
}

fn field(name: &str, column: &Column) -> Result<Type, ParquetError> {
    let (physical, logical) = match column {
        Column::Integers(_) => (Physical::INT64, None),
        Column::Floats(_) => (Physical::DOUBLE, None),
        Column::Strings(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
    field.with_logical_type(logical).build()
}

impl Column {
    fn write(&self, mut to: SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self {
            Column::Integers(values) => {
                let (levels, values) = present(values, |value| *value);
                to.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
            }
            Column::Floats(values) => {
                let (levels, values) = present(values, |value| *value);
                to.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
            }
            Column::Strings(values) => {
                let (levels, values) = present(values, |value| ByteArray::from(value.as_str()));
                to.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
            }
        }
        to.close()
    }
}

/// A level for each row, 1 with a value and 0 for null; then the values alone.
fn present<T, U>(values: &[Option<T>], convert: impl Fn(&T) -> U) -> (Vec<i16>, Vec<U>) {
    let levels = values.iter().map(|value| i16::from(value.is_some())).collect();
    (levels, values.iter().flatten().map(convert).collect())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field;

    use super::*;
    use crate::report::metrics::Value;
    use crate::sweep::Status;
    use crate::sweep::table::tests::table;

    /// Writes the table, and reads its rows with the reader of the same crate. A null is an empty text, as in CSV.
    fn read_back(table: &Table) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        std::fs::write(&path, table.parquet().unwrap()).unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let mut types = Vec::new();
        let mut rows = Vec::new();
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let cell = |field: &Field| match field {
                Field::Null => ("null", String::new()),
                Field::Long(number) => ("integer", number.to_string()),
                Field::Double(number) => ("float", number.to_string()),
                Field::Str(text) => ("string", text.clone()),
                other => panic!("an unexpected type: {other:?}"),
            };
            let (kinds, cells): (Vec<_>, Vec<_>) = row.get_column_iter().map(|(_, field)| cell(field)).unzip();
            if types.is_empty() {
                types = kinds;
            }
            rows.push(cells);
        }
        (types, rows)
    }

    #[test]
    fn file_has_the_rows_of_the_csv_with_types() {
        let mut table = table(&["gpu=tiny,toy", "scale=0.5,2", "block=8,16"], &[5.0; 8]);
        table.columns.push("launch[0].dram__bytes_read.sum".to_owned());
        for (row, n) in table.rows.iter_mut().zip(0..) {
            row.values.push(Value::Number(f64::from(n) / 4.0));
        }
        table.rows[6].values[1] = Value::NotReached;
        table.rows[7].values.clear();
        table.rows[7].status = Status::Failed("a trap, in \"k\"".to_owned());
        let (types, rows) = read_back(&table);
        // Row 0 has no reason.
        assert_eq!(
            types,
            ["string", "float", "integer", "integer", "float", "string", "null"]
        );
        let text = table.csv();
        let mut csv = ::csv::Reader::from_reader(text.as_bytes());
        let wanted: Vec<Vec<String>> = csv
            .records()
            .map(|record| record.unwrap().iter().map(str::to_owned).collect())
            .collect();
        assert_eq!(rows, wanted);
        assert_eq!(table.parquet(), table.parquet());
    }
}
