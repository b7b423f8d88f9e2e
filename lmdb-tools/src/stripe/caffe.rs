//! How much Caffe reads at a time, from the description of a network.

use super::prototxt::Message;

/// Why a description does not tell the batch size.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error(transparent)]
    Syntax(#[from] super::prototxt::Error),
    #[error("this describes a solver, not a network: give the file that its \"{field}\" names ({file})")]
    Solver { field: &'static str, file: String },
    #[error("no layer of the TRAIN phase reads a database (a layer with data_param); give --batch-size")]
    NoDataLayer,
    #[error("layer \"{layer}\": its batch size is \"{text}\", not a number above 0")]
    BatchSize { layer: String, text: String },
    #[error("no data layer of the TRAIN phase is called \"{name}\"; there are: {known}")]
    NoSuchLayer { name: String, known: String },
    #[error("the data layers of the TRAIN phase have different batch sizes ({known}): choose one with --layer NAME")]
    Ambiguous { known: String },
}

/// A layer that reads a database while training.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataLayer {
    pub name: String,
    /// The database, as written.
    pub source: String,
    /// Records of a batch: of one GPU, since each has a solver of its own.
    pub batch_size: u64,
}

/// The data layers of the TRAIN phase, in the order of the file.
pub fn data_layers(text: &str) -> Result<Vec<DataLayer>, Error> {
    let file = Message::parse(text)?;
    // A solver may hold its network instead of naming its file.
    let held = ["train_net_param", "net_param"].into_iter().find_map(|field| file.messages(field).last());
    let net = held.unwrap_or(&file);
    // `layers` is the field's name in files of the first versions.
    let layers = net.messages("layer").chain(net.messages("layers"));
    let found: Vec<_> = layers.filter(|layer| in_training(layer)).filter_map(data_layer).collect::<Result<_, _>>()?;
    if !found.is_empty() {
        return Ok(found);
    }
    match ["net", "train_net"].into_iter().find_map(|field| Some((field, file.word(field)?))) {
        Some((field, file)) => Err(Error::Solver { field, file: file.into() }),
        None => Err(Error::NoDataLayer),
    }
}

/// The layer called `name`; else the one that reads a database of this file name; else any, where all agree.
pub fn choose<'a>(layers: &'a [DataLayer], name: Option<&str>, database: Option<&str>) -> Result<&'a DataLayer, Error> {
    let known = || layers.iter().map(|l| format!("\"{}\" {}", l.name, l.batch_size)).collect::<Vec<_>>().join(", ");
    if let Some(name) = name {
        let named = layers.iter().find(|layer| layer.name == name);
        return named.ok_or_else(|| Error::NoSuchLayer { name: name.into(), known: known() });
    }
    let file_name = |source: &str| source.trim_end_matches('/').rsplit('/').next().map(ToOwned::to_owned);
    let of_database = |layer: &&DataLayer| database.is_some() && file_name(&layer.source).as_deref() == database;
    let mut candidates: Vec<_> = layers.iter().filter(of_database).collect();
    if candidates.is_empty() {
        candidates = layers.iter().collect();
    }
    match candidates.split_first() {
        None => Err(Error::NoDataLayer),
        Some((first, others)) if others.iter().all(|other| other.batch_size == first.batch_size) => Ok(first),
        Some(_) => Err(Error::Ambiguous { known: known() }),
    }
}

fn data_layer(layer: &Message) -> Option<Result<DataLayer, Error>> {
    let (layer, data, batch_size) = match layer.messages("layer").last() {
        // The version before the first, where a layer holds all that concerns it (upgrade_proto.cpp, `UpgradeV0LayerParameter`).
        Some(inner) if inner.word("type") == Some("data") => (inner, inner, "batchsize"),
        Some(_) => return None,
        None => (layer, layer.messages("data_param").last()?, "batch_size"),
    };
    let name = layer.word("name").unwrap_or_default().to_owned();
    let text = data.word(batch_size).unwrap_or_default();
    Some(match text.parse() {
        Ok(batch_size) if batch_size > 0 => {
            Ok(DataLayer { name, source: data.word("source").unwrap_or_default().into(), batch_size })
        }
        _ => Err(Error::BatchSize { layer: name, text: text.into() }),
    })
}

/// Caffe's rule (net.cpp, `FilterNet`): included unless it has `include` rules of which none is met, or an `exclude` rule
/// that is met.
fn in_training(layer: &Message) -> bool {
    if layer.has("include") {
        return layer.messages("include").any(met_in_training);
    }
    !layer.messages("exclude").any(met_in_training)
}

/// Whether a rule is met by the state that training begins with: phase TRAIN, level 0, no stages.
fn met_in_training(rule: &Message) -> bool {
    let level = |name| rule.word(name).and_then(|text| text.parse::<i64>().ok());
    rule.word("phase").is_none_or(|phase| matches!(phase, "TRAIN" | "0"))
        && level("min_level").is_none_or(|min| min <= 0)
        && level("max_level").is_none_or(|max| max >= 0)
        && !rule.has("stage")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(name: &str, source: &str, batch: u32, rules: &str) -> String {
        format!(
            "layer {{ name: \"{name}\" type: \"Data\" {rules} transform_param {{ crop_size: 224 }}
               data_param {{ source: \"{source}\" batch_size: {batch} backend: LMDB }} }}\n"
        )
    }

    fn batches(text: &str) -> Vec<u64> {
        data_layers(text).unwrap().iter().map(|layer| layer.batch_size).collect()
    }

    #[test]
    fn only_the_training_phase_counts() {
        let train = layer("data", "train_lmdb", 32, "include { phase: TRAIN }");
        let test = layer("data", "val_lmdb", 50, "include { phase: TEST }");
        assert_eq!(batches(&(test.clone() + &train)), [32]);
        assert_eq!(batches(&layer("data", "x", 7, "exclude { phase: TEST }")), [7]);
        assert_eq!(batches(&layer("data", "x", 7, "include { phase: TEST } include { phase: TRAIN }")), [7]);
        assert_eq!(batches(&layer("data", "x", 7, "")), [7]);
        for rules in ["exclude { phase: TRAIN }", "include { stage: \"deploy\" }", "include { min_level: 1 }"] {
            assert_eq!(data_layers(&layer("data", "x", 7, rules)), Err(Error::NoDataLayer), "{rules}");
        }
        assert_eq!(data_layers(&test), Err(Error::NoDataLayer));
    }

    #[test]
    fn the_first_version_of_the_format() {
        assert_eq!(batches("layers { name: 'd' type: DATA data_param { source: 'x' batch_size: 256 } }"), [256]);
    }

    #[test]
    fn the_version_before_the_first() {
        let text = "layers { layer { name: 'd' type: 'data' source: '/data/ilsvrc12-train-leveldb' batchsize: 256 } top: 'data' }
                    layers { layer { name: 'i' type: 'images' source: 'list.txt' batchsize: 10 } top: 'data' }";
        let layers = data_layers(text).unwrap();
        let expected = DataLayer { name: "d".into(), source: "/data/ilsvrc12-train-leveldb".into(), batch_size: 256 };
        assert_eq!(layers, [expected]);
    }

    #[test]
    fn a_solver_that_holds_its_network() {
        let (train, test) = (layer("data", "x", 32, "include { phase: TRAIN }"), layer("data", "x", 50, ""));
        assert_eq!(batches(&format!("base_lr: 0.01 net_param {{ {train} }}")), [32]);
        assert_eq!(batches(&format!("train_net_param {{ {train} }} test_net_param {{ {test} }} test_iter: 5")), [32]);
        assert_eq!(data_layers("net_param { name: 'empty' }"), Err(Error::NoDataLayer));
    }

    #[test]
    fn several_data_layers() {
        let text = layer("image", "/data/train_lmdb/", 32, "") + &layer("label", "/data/label_lmdb", 64, "");
        let layers = data_layers(&text).unwrap();
        assert_eq!(choose(&layers, Some("label"), None).unwrap().batch_size, 64);
        assert_eq!(choose(&layers, None, Some("train_lmdb")).unwrap().batch_size, 32);
        assert!(matches!(choose(&layers, None, Some("other")), Err(Error::Ambiguous { .. })));
        assert!(matches!(choose(&layers, Some("nope"), None), Err(Error::NoSuchLayer { .. })));
        assert_eq!(choose(&layers[..1], None, Some("other")).unwrap().batch_size, 32);
    }

    #[test]
    fn what_is_no_network() {
        let solver = data_layers("net: \"train_val.prototxt\"\nbase_lr: 0.01");
        assert_eq!(solver, Err(Error::Solver { field: "net", file: "train_val.prototxt".into() }));
        assert_eq!(data_layers(""), Err(Error::NoDataLayer));
        assert!(matches!(data_layers(&layer("d", "x", 0, "")), Err(Error::BatchSize { .. })));
    }
}
