//! From tokens to the nodes of a document (`parserc.go`, and the parser in `decode.go`).

use std::collections::HashMap;

use super::resolve;
use super::scanner::{Scanner, YamlFault, YamlToken};

/// How deep lists and mappings may nest, aliases counted where they stand. go-yaml has 10,000; our stack
/// must bear it in every build. What is deeper is refused in go-yaml's words.
pub(super) const MAX_DEPTH: usize = 128;

/// How many %TAG directives a document may have: each tag is looked for among all of them. go-yaml has no
/// bound; documents have one or two.
const MAX_TAG_DIRECTIVES: usize = 64;

/// The tags that every document knows.
const DEFAULT_TAGS: [(&str, &str); 2] = [("!", "!"), ("!!", "tag:yaml.org,2002:")];

/// A node within its document.
pub(super) type NodeId = usize;
/// Keys and values.
pub(super) type Entries = Vec<(NodeId, NodeId)>;

pub(super) struct YamlNode {
    /// From zero.
    pub(super) line: usize,
    /// In full, as `tag:yaml.org,2002:int`; empty without any. One of the few that are told apart
    /// ([`resolve::known_tag`]): a copy of its own for each node would multiply a directive's prefix.
    pub(super) tag: &'static str,
    pub(super) content: YamlContent,
}

pub(super) enum YamlContent {
    /// Implicit: neither tagged nor quoted, or tagged with a mere `!`.
    Scalar {
        text: String,
        is_implicit: bool,
    },
    Sequence(Vec<NodeId>),
    Mapping(Entries),
    Alias {
        name: String,
        target: NodeId,
    },
}

pub(super) struct YamlDocument {
    pub(super) nodes: Vec<YamlNode>,
    pub(super) root: NodeId,
}

pub(super) struct Composer<'t> {
    scanner: Scanner<'t>,
    nodes: Vec<YamlNode>,
    anchors: HashMap<String, NodeId>,
    tags: Vec<(String, String)>,
    depth: usize,
    is_first: bool,
}

/// What may stand before a node's content.
#[derive(Default)]
struct Properties {
    line: usize,
    anchor: Option<String>,
    tag: &'static str,
}

impl<'t> Composer<'t> {
    pub(super) fn new(text: &'t str) -> Composer<'t> {
        Composer {
            scanner: Scanner::new(text),
            nodes: Vec::new(),
            anchors: HashMap::new(),
            tags: Vec::new(),
            depth: 0,
            is_first: true,
        }
    }

    /// The next document; None behind the last.
    pub(super) fn document(&mut self) -> Result<Option<YamlDocument>, YamlFault> {
        let is_first = std::mem::take(&mut self.is_first);
        while !is_first && self.scanner.peek()?.token == YamlToken::DocumentEnd {
            self.scanner.next()?;
        }
        if self.scanner.peek()?.token == YamlToken::StreamEnd {
            return Ok(None);
        }
        self.anchors.clear();
        let has_directives = self.directives()?;
        let start = self.scanner.peek()?;
        if start.token == YamlToken::DocumentStart {
            self.scanner.next()?;
        } else if !is_first || has_directives {
            return Err(fault("did not find expected <document start>", start.line));
        }
        let defaults = DEFAULT_TAGS.map(|(handle, prefix)| (handle.to_owned(), prefix.to_owned()));
        self.tags.extend(defaults);
        let root = self.root()?;
        if self.scanner.peek()?.token == YamlToken::DocumentEnd {
            self.scanner.next()?;
        }
        Ok(Some(YamlDocument { nodes: std::mem::take(&mut self.nodes), root }))
    }

    fn root(&mut self) -> Result<NodeId, YamlFault> {
        let start = self.scanner.peek()?;
        let line = start.line;
        match start.token {
            YamlToken::Version(..)
            | YamlToken::TagDirective(..)
            | YamlToken::DocumentStart
            | YamlToken::DocumentEnd
            | YamlToken::StreamEnd => Ok(self.empty(line)),
            _ => self.node(true, false),
        }
    }

    /// Whether there are any.
    fn directives(&mut self) -> Result<bool, YamlFault> {
        self.tags.clear();
        let mut has_version = false;
        loop {
            let line = self.scanner.peek()?.line;
            match &self.scanner.peek()?.token {
                YamlToken::Version(..) if has_version => {
                    return Err(fault("found duplicate %YAML directive", line));
                }
                YamlToken::Version(1, 1) => has_version = true,
                YamlToken::Version(..) => return Err(fault("found incompatible YAML document", line)),
                YamlToken::TagDirective(handle, _) if self.tags.iter().any(|(known, _)| known == handle) => {
                    return Err(fault("found duplicate %TAG directive", line));
                }
                YamlToken::TagDirective(..) if self.tags.len() == MAX_TAG_DIRECTIVES => {
                    return Err(fault("found too many %TAG directives", line));
                }
                YamlToken::TagDirective(handle, prefix) => self.tags.push((handle.clone(), prefix.clone())),
                _ => break,
            }
            self.scanner.next()?;
        }
        Ok(has_version || !self.tags.is_empty())
    }

    fn add(&mut self, line: usize, tag: &'static str, content: YamlContent) -> NodeId {
        self.nodes.push(YamlNode { line, tag, content });
        self.nodes.len() - 1
    }

    fn empty(&mut self, line: usize) -> NodeId {
        self.add(line, "", YamlContent::Scalar { text: String::new(), is_implicit: true })
    }

    /// A node. In a block it may be one; as a value it may be a list that is not indented.
    fn node(&mut self, is_block: bool, takes_indentless: bool) -> Result<NodeId, YamlFault> {
        if self.depth >= MAX_DEPTH {
            let fault = self.scanner.fault(&format!("exceeded max depth of {MAX_DEPTH}"));
            return Err(fault);
        }
        self.depth += 1;
        let node = self.nested_node(is_block, takes_indentless);
        self.depth -= 1;
        node
    }

    fn nested_node(&mut self, is_block: bool, takes_indentless: bool) -> Result<NodeId, YamlFault> {
        if let YamlToken::Alias(name) = &self.scanner.peek()?.token {
            let name = name.clone();
            return self.alias(name);
        }
        let properties = self.properties()?;
        let next = self.scanner.peek()?;
        let line = next.line;
        match &next.token {
            YamlToken::BlockEntry if takes_indentless => {
                self.sequence(properties, Composer::indentless_items)
            }
            YamlToken::Scalar { .. } => self.scalar(properties),
            YamlToken::FlowSequence => self.sequence(properties, Composer::flow_items),
            YamlToken::FlowMapping => self.mapping(properties, Composer::flow_entries),
            YamlToken::BlockSequence if is_block => self.sequence(properties, Composer::block_items),
            YamlToken::BlockMapping if is_block => self.mapping(properties, Composer::block_entries),
            _ if properties.anchor.is_some() || !properties.tag.is_empty() => {
                let is_implicit = properties.tag.is_empty();
                let content = YamlContent::Scalar { text: String::new(), is_implicit };
                Ok(self.anchored(properties, content))
            }
            _ => Err(fault("did not find expected node content", line)),
        }
    }

    fn alias(&mut self, name: String) -> Result<NodeId, YamlFault> {
        let line = self.scanner.next()?.line;
        match self.anchors.get(&name) {
            Some(&target) => Ok(self.add(line, "", YamlContent::Alias { name, target })),
            None => Err(fault(&format!("unknown anchor '{name}' referenced"), 0)),
        }
    }

    /// An anchor and a tag, in either order.
    fn properties(&mut self) -> Result<Properties, YamlFault> {
        let mut found = Properties { line: self.scanner.peek()?.line, ..Properties::default() };
        let mut has_tag = false;
        loop {
            let next = self.scanner.peek()?;
            match &next.token {
                YamlToken::Anchor(name) if found.anchor.is_none() => found.anchor = Some(name.clone()),
                YamlToken::Tag(handle, suffix) if !has_tag => {
                    has_tag = true;
                    let tag = full_tag(&self.tags, handle, suffix);
                    found.tag = tag.ok_or_else(|| fault("found undefined tag handle", next.line))?;
                }
                _ => return Ok(found),
            }
            self.scanner.next()?;
        }
    }

    fn anchored(&mut self, properties: Properties, content: YamlContent) -> NodeId {
        let id = self.add(properties.line, properties.tag, content);
        if let Some(anchor) = properties.anchor {
            self.anchors.insert(anchor, id);
        }
        id
    }

    fn scalar(&mut self, properties: Properties) -> Result<NodeId, YamlFault> {
        let YamlToken::Scalar { text, is_plain } = self.scanner.next()?.token else {
            unreachable!("it was peeked at");
        };
        let is_implicit = properties.tag.is_empty() && is_plain || properties.tag == "!";
        Ok(self.anchored(properties, YamlContent::Scalar { text, is_implicit }))
    }

    fn sequence(
        &mut self,
        properties: Properties,
        items: fn(&mut Self) -> Result<Vec<NodeId>, YamlFault>,
    ) -> Result<NodeId, YamlFault> {
        // It is known by its anchor to what it holds.
        let id = self.anchored(properties, YamlContent::Sequence(Vec::new()));
        self.nodes[id].content = YamlContent::Sequence(items(self)?);
        Ok(id)
    }

    fn mapping(
        &mut self,
        properties: Properties,
        entries: fn(&mut Self) -> Result<Entries, YamlFault>,
    ) -> Result<NodeId, YamlFault> {
        let id = self.anchored(properties, YamlContent::Mapping(Vec::new()));
        self.nodes[id].content = YamlContent::Mapping(entries(self)?);
        Ok(id)
    }

    /// Takes a token if it is next; its line.
    fn take(&mut self, token: &YamlToken) -> Result<Option<usize>, YamlFault> {
        if self.scanner.peek()?.token != *token {
            return Ok(None);
        }
        Ok(Some(self.scanner.next()?.line))
    }

    /// A node in a block, or nothing where one of the tokens follows.
    fn block_node(
        &mut self,
        line: usize,
        takes_indentless: bool,
        ends: &[YamlToken],
    ) -> Result<NodeId, YamlFault> {
        if ends.contains(&self.scanner.peek()?.token) {
            return Ok(self.empty(line));
        }
        self.node(true, takes_indentless)
    }

    fn block_items(&mut self) -> Result<Vec<NodeId>, YamlFault> {
        self.scanner.next()?;
        let mut items = Vec::new();
        while let Some(line) = self.take(&YamlToken::BlockEntry)? {
            items.push(self.block_node(line, false, &[YamlToken::BlockEntry, YamlToken::BlockEnd])?);
        }
        match self.take(&YamlToken::BlockEnd)? {
            Some(_) => Ok(items),
            None => Err(fault("did not find expected '-' indicator", self.scanner.peek()?.line)),
        }
    }

    fn indentless_items(&mut self) -> Result<Vec<NodeId>, YamlFault> {
        let mut items = Vec::new();
        while let Some(line) = self.take(&YamlToken::BlockEntry)? {
            let ends = [YamlToken::BlockEntry, YamlToken::Key, YamlToken::Value, YamlToken::BlockEnd];
            items.push(self.block_node(line, false, &ends)?);
        }
        Ok(items)
    }

    fn block_entries(&mut self) -> Result<Entries, YamlFault> {
        const ENDS: [YamlToken; 3] = [YamlToken::Key, YamlToken::Value, YamlToken::BlockEnd];
        self.scanner.next()?;
        let mut entries = Vec::new();
        while let Some(line) = self.take(&YamlToken::Key)? {
            let key = self.block_node(line, true, &ENDS)?;
            let value = match self.take(&YamlToken::Value)? {
                Some(line) => self.block_node(line, true, &ENDS)?,
                None => {
                    let line = self.scanner.peek()?.line;
                    self.empty(line)
                }
            };
            entries.push((key, value));
        }
        match self.take(&YamlToken::BlockEnd)? {
            Some(_) => Ok(entries),
            None => Err(fault("did not find expected key", self.scanner.peek()?.line)),
        }
    }

    /// A node in a flow collection, or nothing where one of the tokens follows.
    fn flow_node(&mut self, ends: &[YamlToken]) -> Result<NodeId, YamlFault> {
        let next = self.scanner.peek()?;
        let line = next.line;
        if ends.contains(&next.token) { Ok(self.empty(line)) } else { self.node(false, false) }
    }

    /// The value behind a colon, if one is there.
    fn flow_value(&mut self, ends: &[YamlToken]) -> Result<NodeId, YamlFault> {
        if self.take(&YamlToken::Value)?.is_some() {
            return self.flow_node(ends);
        }
        let line = self.scanner.peek()?.line;
        Ok(self.empty(line))
    }

    /// Whether another item follows in a flow collection, behind its comma.
    fn flow_goes_on(&mut self, is_first: bool, end: &YamlToken, refusal: &str) -> Result<bool, YamlFault> {
        if self.take(end)?.is_some() {
            return Ok(false);
        }
        if !is_first && self.take(&YamlToken::FlowEntry)?.is_none() {
            return Err(fault(refusal, self.scanner.peek()?.line));
        }
        Ok(is_first || self.take(end)?.is_none())
    }

    fn flow_items(&mut self) -> Result<Vec<NodeId>, YamlFault> {
        self.scanner.next()?;
        let mut items = Vec::new();
        let mut is_first = true;
        while self.flow_goes_on(is_first, &YamlToken::FlowSequenceEnd, "did not find expected ',' or ']'")? {
            is_first = false;
            items.push(match self.take(&YamlToken::Key)? {
                Some(line) => self.flow_pair(line)?,
                None => self.node(false, false)?,
            });
        }
        Ok(items)
    }

    /// `key: value` in a list is a mapping of its own.
    fn flow_pair(&mut self, line: usize) -> Result<NodeId, YamlFault> {
        const ENDS: [YamlToken; 2] = [YamlToken::FlowEntry, YamlToken::FlowSequenceEnd];
        let properties = Properties { line, ..Properties::default() };
        let id = self.anchored(properties, YamlContent::Mapping(Vec::new()));
        let key = self.flow_node(&[YamlToken::Value, YamlToken::FlowEntry, YamlToken::FlowSequenceEnd])?;
        let value = self.flow_value(&ENDS)?;
        self.nodes[id].content = YamlContent::Mapping(vec![(key, value)]);
        Ok(id)
    }

    fn flow_entries(&mut self) -> Result<Entries, YamlFault> {
        const ENDS: [YamlToken; 2] = [YamlToken::FlowEntry, YamlToken::FlowMappingEnd];
        self.scanner.next()?;
        let mut entries = Vec::new();
        let mut is_first = true;
        while self.flow_goes_on(is_first, &YamlToken::FlowMappingEnd, "did not find expected ',' or '}'")? {
            is_first = false;
            let entry = if self.take(&YamlToken::Key)?.is_some() {
                let key =
                    self.flow_node(&[YamlToken::Value, YamlToken::FlowEntry, YamlToken::FlowMappingEnd])?;
                (key, self.flow_value(&ENDS)?)
            } else {
                let key = self.node(false, false)?;
                let line = self.scanner.peek()?.line;
                (key, self.empty(line))
            };
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// The tag that a handle, if there is one, and a suffix stand for.
fn full_tag(tags: &[(String, String)], handle: &str, suffix: &str) -> Option<&'static str> {
    let prefix = match handle {
        "" => "",
        handle => tags.iter().find(|(known, _)| known == handle)?.1.as_str(),
    };
    let tag = format!("{prefix}{suffix}");
    (!tag.is_empty()).then(|| resolve::known_tag(&tag))
}

fn fault(problem: &str, line: usize) -> YamlFault {
    YamlFault { problem: problem.to_owned(), line }
}
