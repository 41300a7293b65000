//! Server-side apply: structured-merge-diff's own cases as data, the codec, what Kubernetes adds, and laws.

mod builtin;
mod cases;
mod codec;
mod laws;
mod manager;

use serde_json::Value;

use super::{
    Converter, Managed, ManagedFieldsOperation, ManagerEntry, ManagerId, ResetFields, SchemaType, Updater,
    print_path,
};
use crate::schema::Schema;

/// Every version but `gone` has the same form.
struct SameForm<'s>(SchemaType<'s>);

impl Converter for SameForm<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Option<Value> {
        (api_version != "gone").then(|| object.clone())
    }

    fn convert_back(&self, object: &Value, api_version: &str) -> Option<Value> {
        self.convert(object, api_version)
    }

    fn schema(&self, api_version: &str) -> Option<SchemaType<'_>> {
        (api_version != "gone").then_some(self.0)
    }
}

/// An object as it is written by several managers.
struct State<'s> {
    schema: &'s Schema,
    object: Value,
    managed: Managed,
}

impl<'s> State<'s> {
    fn new(schema: &'s Schema) -> Self {
        State { schema, object: Value::Null, managed: Managed::default() }
    }

    fn id(manager: &str, api_version: &str, operation: ManagedFieldsOperation) -> ManagerId {
        let (manager, api_version) = (manager.to_owned(), api_version.to_owned());
        ManagerId { manager, operation, api_version, subresource: String::new() }
    }

    fn with<T>(&mut self, version: &str, run: impl FnOnce(&Updater, &Value, &mut Managed) -> T) -> T {
        let kind = SchemaType::Known(self.schema);
        let (reset, converter) = (ResetFields::default(), SameForm(kind));
        let updater = Updater { kind, api_version: version, reset: &reset, converter: &converter };
        run(&updater, &self.object, &mut self.managed)
    }

    fn update(&mut self, manager: &str, version: &str, new: &Value) {
        let id = Self::id(manager, version, ManagedFieldsOperation::Update);
        let changed = self.with(version, |updater, live, managed| updater.update(live, new, managed, &id));
        if let Some(changed) = changed {
            let own = self.managed.set_of(&id).difference(&changed.removed);
            let own = own.union(&changed.modified).union(&changed.added);
            self.managed.put(ManagerEntry::new(id, None, own));
        }
        self.object = new.clone();
    }

    /// The fields that are in the way, when the apply is refused.
    fn apply(
        &mut self,
        manager: &str,
        version: &str,
        config: &Value,
        force: bool,
    ) -> Result<(), Vec<String>> {
        let id = Self::id(manager, version, ManagedFieldsOperation::Apply);
        let before = self.managed.clone();
        let applied =
            self.with(version, |updater, live, managed| updater.apply(live, config, managed, &id, force));
        match applied {
            Ok(object) => {
                self.object = object.unwrap_or_else(|| self.object.clone());
                Ok(())
            }
            Err(super::ApplyRefusal::Conflicts(conflicts)) => {
                self.managed = before;
                Err(conflicts.0.iter().map(|conflict| print_path(&conflict.path)).collect())
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    /// A manager's version and fields, as they are printed.
    fn fields_of(&self, manager: &str) -> Vec<String> {
        let Some(entry) = self.managed.0.iter().find(|entry| entry.id.manager == manager) else {
            return vec![];
        };
        let mut fields: Vec<String> = entry.set().paths().iter().map(|path| print_path(path)).collect();
        fields.sort();
        fields.insert(0, entry.id.api_version.clone());
        fields
    }
}
