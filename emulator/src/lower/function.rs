//! The driver: walks the statements of an entry, keeps scopes, labels and lines, and inlines calls.

use super::call::RETURN;
use super::entry::{Entry, Line, Special, SpecialKind};
use super::flow;
use super::op::{File, Inst, NONE, Op, Reg};
use super::scope::{Scopes, Symbol, file_of};
use crate::count::InstructionKind;
use crate::memory::MODULE_BASE;
use crate::parse::ast::{
    Function, Instruction, Module, Operand, RegisterDeclaration, Space, Statement, Ty, Variable,
};
use crate::{ParseError, ParseErrorKind};
use std::collections::HashMap;
use std::sync::Arc;

/// Registers of one file; the rest of the number space stays for [`NONE`].
const MAX_REGISTERS: u64 = 60_000;
/// Instructions of one entry, inlined calls included.
const MAX_CODE: u64 = 1 << 18;
/// Static shared and parameter memory, and variables of the module.
const MAX_SPACE: u64 = 64 << 20;
/// Local memory of a thread, as the hardware has it (CUDA programming guide, "Compute capabilities").
const MAX_LOCAL: u64 = 512 << 10;
/// Bits of the data flow sets: a set of all registers at the head of each basic block.
const MAX_FLOW: u64 = 1 << 28;

pub(super) type Result<T> = std::result::Result<T, ParseError>;

/// The lowered module.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub(crate) entries: Vec<Entry>,
    /// Initial bytes of the `.global` variables, from [`MODULE_BASE`].
    pub(crate) globals: Vec<u8>,
    /// Bytes of the `.const` variables.
    pub(crate) constants: Vec<u8>,
}

/// Lowers every entry of a module.
pub(crate) fn lower_module(module: &Module) -> Result<Lowered> {
    let mut globals = Vec::new();
    let mut constants = Vec::new();
    let mut symbols = Vec::new();
    for variable in &module.variables {
        let bytes = variable.bytes.unwrap_or(0);
        let (image, base) = match variable.space {
            Space::Global => (&mut globals, MODULE_BASE),
            Space::Const => (&mut constants, 0),
            _ => continue,
        };
        let start = (image.len() as u64).next_multiple_of(variable.align.max(1));
        let end = limited(0, "module variables", start + bytes, MAX_SPACE)?;
        image.resize(end as usize, 0);
        image[start as usize..start as usize + variable.init.len()].copy_from_slice(&variable.init);
        symbols.push((
            variable.name.clone(),
            Symbol::Variable {
                space: variable.space,
                address: base + start,
            },
        ));
    }
    let mut entries = Vec::new();
    for function in module.functions.iter().filter(|function| function.entry) {
        entries.push(Lowerer::new(module).entry(function, &symbols)?);
    }
    Ok(Lowered {
        entries,
        globals,
        constants,
    })
}

fn limited(line: u32, what: &'static str, value: u64, limit: u64) -> Result<u64> {
    if value > limit {
        return Err(ParseError {
            line,
            kind: ParseErrorKind::TooLarge { what, value, limit },
        });
    }
    Ok(value)
}

/// A branch whose target is not yet known.
struct Fixup {
    at: usize,
    frame: usize,
    label: Arc<str>,
    line: u32,
}

/// Lowers one entry.
pub(super) struct Lowerer<'m> {
    pub(super) module: &'m Module,
    pub(super) scopes: Scopes,
    pub(super) code: Vec<Inst>,
    lines: Vec<Line>,
    kinds: Vec<InstructionKind>,
    pub(super) tables: Vec<Vec<u32>>,
    /// `brx.idx` tables: label lists by name, and which table waits for which list.
    targets: HashMap<(usize, Arc<str>), Vec<Arc<str>>>,
    table_fixups: Vec<(usize, usize, Arc<str>, u32)>,
    fixups: Vec<Fixup>,
    pub(super) labels: HashMap<(usize, Arc<str>), u32>,
    counts: [u64; 3],
    constants32: HashMap<u32, Reg>,
    constants64: HashMap<u64, Reg>,
    specials: Vec<Special>,
    special_numbers: HashMap<SpecialKind, Reg>,
    static_shared: u64,
    dynamic_align: u64,
    local_bytes: u64,
    /// The function being walked: 0 is the entry, each inlined call has its own.
    pub(super) frame: usize,
    pub(super) frames: usize,
    pub(super) calls: Vec<Arc<str>>,
    pub(super) source: Option<(u32, u32)>,
    /// Line of the statement being lowered.
    pub(super) line: u32,
}

impl<'m> Lowerer<'m> {
    fn new(module: &'m Module) -> Self {
        Self {
            module,
            scopes: Scopes::default(),
            code: Vec::new(),
            lines: Vec::new(),
            kinds: Vec::new(),
            tables: Vec::new(),
            targets: HashMap::new(),
            table_fixups: Vec::new(),
            fixups: Vec::new(),
            labels: HashMap::new(),
            counts: [0; 3],
            constants32: HashMap::new(),
            constants64: HashMap::new(),
            specials: Vec::new(),
            special_numbers: HashMap::new(),
            static_shared: 0,
            dynamic_align: 16,
            local_bytes: 0,
            frame: 0,
            frames: 0,
            calls: Vec::new(),
            source: None,
            line: 0,
        }
    }

    pub(super) fn fail<T>(&self, kind: ParseErrorKind) -> Result<T> {
        Err(ParseError {
            line: self.line,
            kind,
        })
    }

    /// Whether the code being lowered belongs to an inlined function.
    pub(super) const fn inlined(&self) -> bool {
        self.frame != 0
    }

    fn entry(mut self, function: &'m Function, globals: &[(Arc<str>, Symbol)]) -> Result<Entry> {
        self.scopes.enter();
        for (name, symbol) in globals {
            self.declare(name, *symbol)?;
        }
        // Dynamic shared memory starts behind the static one, whose size is known only at the end; it is declared
        // first and its alignment gathered, so that static variables can be placed from 0.
        let mut dynamic = Vec::new();
        for variable in self
            .module
            .variables
            .iter()
            .filter(|variable| variable.space == Space::Shared)
        {
            if variable.bytes.is_some() {
                self.variable(variable)?;
            } else {
                self.dynamic_align = self.dynamic_align.max(variable.align);
                dynamic.push(variable.name.clone());
            }
        }
        let inner: u64 = function
            .body
            .iter()
            .filter_map(|statement| match statement {
                Statement::Variable(variable) if variable.space == Space::Shared => Some(variable),
                _ => None,
            })
            .try_fold(self.static_shared, |at, variable| {
                let end = at.next_multiple_of(variable.align) + variable.bytes.unwrap_or(0);
                limited(self.line, "shared memory", end, MAX_SPACE)
            })?;
        let dynamic_base = inner.next_multiple_of(self.dynamic_align);
        for name in dynamic {
            self.declare(
                &name,
                Symbol::Variable {
                    space: Space::Shared,
                    address: dynamic_base,
                },
            )?;
        }
        let mut param_bytes = 0;
        self.scopes.enter();
        for param in &function.params {
            let start = u64::next_multiple_of(param_bytes, param.align.max(1));
            param_bytes = limited(
                self.line,
                "parameters",
                start + param.bytes.unwrap_or(0),
                1 << 16,
            )?;
            self.declare(
                &param.name,
                Symbol::Variable {
                    space: Space::Param,
                    address: start,
                },
            )?;
        }
        self.calls.push(function.name.clone());
        self.body(&function.body)?;
        // Control must not run off the end.
        if !matches!(
            self.code.last(),
            Some(Inst {
                op: Op::Exit,
                guard: NONE,
                ..
            })
        ) {
            self.emit(Op::Exit, InstructionKind::Branch, (NONE, false))?;
        }
        self.resolve()?;
        let mut entry = Entry {
            name: function.name.clone(),
            param_bytes: param_bytes as u32,
            static_shared: inner as u32,
            dynamic_base: dynamic_base as u32,
            local_bytes: self.local_bytes.next_multiple_of(8) as u32,
            code: self.code,
            lines: self.lines,
            kinds: self.kinds,
            tables: self.tables,
            tracked: Vec::new(),
            preds: self.counts[0] as u16,
            words: self.counts[1] as u16,
            doubles: self.counts[2] as u16,
            constants32: self
                .constants32
                .iter()
                .map(|(value, reg)| (*reg, *value))
                .collect(),
            constants64: self
                .constants64
                .iter()
                .map(|(value, reg)| (*reg, *value))
                .collect(),
            specials: self.specials,
        };
        entry.constants32.sort_unstable();
        entry.constants64.sort_unstable();
        let sets = flow::size(&entry);
        limited(self.line, "basic blocks times registers", sets, MAX_FLOW)?;
        flow::finish(&mut entry);
        Ok(entry)
    }

    fn resolve(&mut self) -> Result<()> {
        let find = |labels: &HashMap<(usize, Arc<str>), u32>, frame, label: &Arc<str>, line| {
            labels
                .get(&(frame, label.clone()))
                .copied()
                .ok_or_else(|| ParseError {
                    line,
                    kind: ParseErrorKind::Unknown {
                        what: "label",
                        name: label.to_string(),
                    },
                })
        };
        for fixup in &self.fixups {
            let to = find(&self.labels, fixup.frame, &fixup.label, fixup.line)?;
            if let Op::Branch { target } = &mut self.code[fixup.at].op {
                *target = to;
            }
        }
        for (table, frame, name, line) in &self.table_fixups {
            let Some(labels) = self.targets.get(&(*frame, name.clone())) else {
                return Err(ParseError {
                    line: *line,
                    kind: ParseErrorKind::Unknown {
                        what: "branch target list",
                        name: name.to_string(),
                    },
                });
            };
            for label in labels {
                let to = find(&self.labels, *frame, label, *line)?;
                self.tables[*table].push(to);
            }
        }
        // A label at the very end stands behind the last instruction: the final exit was added for it.
        Ok(())
    }

    pub(super) fn declare(&mut self, name: &Arc<str>, symbol: Symbol) -> Result<()> {
        if self.scopes.declare(name, symbol) {
            return Ok(());
        }
        self.fail(ParseErrorKind::Duplicate(name.to_string()))
    }

    pub(super) fn body(&mut self, body: &'m [Statement]) -> Result<()> {
        self.scopes.enter();
        for statement in body {
            match statement {
                Statement::Open => self.scopes.enter(),
                Statement::Close => self.scopes.leave(),
                Statement::Register(declaration) => self.register(declaration)?,
                Statement::Variable(variable) => self.variable(variable)?,
                Statement::Label(name) => {
                    let here = self.code.len() as u32;
                    let key = (self.frame, name.clone());
                    if self.labels.insert(key, here).is_some() {
                        return self.fail(ParseErrorKind::Duplicate(name.to_string()));
                    }
                }
                Statement::Targets { name, labels } => {
                    self.targets
                        .insert((self.frame, name.clone()), labels.clone());
                }
                Statement::Loc { file, line } => self.source = Some((*file, *line)),
                Statement::Instruction(instruction) => self.instruction(instruction)?,
            }
        }
        self.scopes.leave();
        Ok(())
    }

    fn register(&mut self, declaration: &RegisterDeclaration) -> Result<()> {
        self.line = declaration.line;
        let ty = declaration.ty;
        if file_of(ty).is_none() {
            return self.fail(ParseErrorKind::Unsupported(format!(".reg {ty:?}")));
        }
        match declaration.count {
            Some(count) => {
                self.scopes.declare_range(&declaration.name, ty, count);
                Ok(())
            }
            None => {
                let reg = self.fresh(file_of(ty).unwrap_or(File::W32))?;
                self.declare(&declaration.name, Symbol::Register { ty, reg })
            }
        }
    }

    fn variable(&mut self, variable: &Variable) -> Result<()> {
        let (next, space) = match variable.space {
            Space::Shared => (&mut self.static_shared, Space::Shared),
            // Parameters of calls are the thread's own memory.
            _ => (&mut self.local_bytes, Space::Local),
        };
        let address = next.next_multiple_of(variable.align.max(1));
        let (what, limit) = match space {
            Space::Local => ("local memory of a thread", MAX_LOCAL),
            _ => ("memory", MAX_SPACE),
        };
        *next = limited(
            self.line,
            what,
            address + variable.bytes.unwrap_or(0),
            limit,
        )?;
        self.declare(&variable.name, Symbol::Variable { space, address })
    }

    /// A new register.
    pub(super) fn fresh(&mut self, file: File) -> Result<Reg> {
        let count = &mut self.counts[file as usize];
        let reg = limited(self.line, "registers", *count, MAX_REGISTERS)?;
        *count += 1;
        Ok(reg as Reg)
    }

    pub(super) fn find(&mut self, name: &str) -> Result<Option<Symbol>> {
        let Self {
            scopes,
            counts,
            line,
            ..
        } = self;
        scopes.find(name, |ty| {
            let count = &mut counts[file_of(ty).unwrap_or(File::W32) as usize];
            let reg = limited(*line, "registers", *count, MAX_REGISTERS)?;
            *count += 1;
            Ok(reg as Reg)
        })
    }

    /// The plane that holds a constant in every lane.
    pub(super) fn constant32(&mut self, value: u32) -> Result<Reg> {
        if let Some(reg) = self.constants32.get(&value) {
            return Ok(*reg);
        }
        let reg = self.fresh(File::W32)?;
        self.constants32.insert(value, reg);
        Ok(reg)
    }

    pub(super) fn constant64(&mut self, value: u64) -> Result<Reg> {
        if let Some(reg) = self.constants64.get(&value) {
            return Ok(*reg);
        }
        let reg = self.fresh(File::W64)?;
        self.constants64.insert(value, reg);
        Ok(reg)
    }

    /// The plane that holds a special register.
    pub(super) fn special(&mut self, kind: SpecialKind) -> Result<Reg> {
        if let Some(reg) = self.special_numbers.get(&kind) {
            return Ok(*reg);
        }
        let wide = kind == SpecialKind::GridId;
        let reg = self.fresh(if wide { File::W64 } else { File::W32 })?;
        self.special_numbers.insert(kind, reg);
        self.specials.push(Special { reg, wide, kind });
        Ok(reg)
    }

    /// Appends an instruction.
    pub(super) fn emit(&mut self, op: Op, kind: InstructionKind, guard: (Reg, bool)) -> Result<()> {
        limited(
            self.line,
            "instructions",
            self.code.len() as u64 + 1,
            MAX_CODE,
        )?;
        self.code.push(Inst {
            op,
            guard: guard.0,
            guard_not: guard.1,
            tracked: false,
        });
        self.lines.push(Line {
            ptx: self.line,
            source: self.source,
        });
        self.kinds.push(kind);
        Ok(())
    }

    fn instruction(&mut self, instruction: &'m Instruction) -> Result<()> {
        self.line = instruction.line;
        let guard = match &instruction.guard {
            Some(guard) => (
                self.predicate_named(&guard.register, instruction)?,
                guard.negated,
            ),
            None => (NONE, false),
        };
        match &*instruction.opcode[0] {
            "bra" => {
                let [Operand::Name(label)] = &instruction.operands[..] else {
                    return self.bad_operand(instruction, "one label is wanted");
                };
                self.branch(label.clone(), guard)
            }
            "brx" => {
                let [index, Operand::Name(list)] = &instruction.operands[..] else {
                    return self
                        .bad_operand(instruction, "a register and a target list are wanted");
                };
                let index = self.word(index, Ty::U32, instruction)?;
                self.table_fixups
                    .push((self.tables.len(), self.frame, list.clone(), self.line));
                let table = self.tables.len() as u32;
                self.tables.push(Vec::new());
                self.emit(
                    Op::BranchTable { index, table },
                    InstructionKind::Branch,
                    guard,
                )
            }
            "ret" if self.inlined() => self.branch(Arc::from(RETURN), guard),
            "call" => self.call(instruction, guard),
            _ => {
                let (op, kind) = self.operation(instruction)?;
                self.emit(op, kind, guard)
            }
        }
    }

    fn branch(&mut self, label: Arc<str>, guard: (Reg, bool)) -> Result<()> {
        self.fixups.push(Fixup {
            at: self.code.len(),
            frame: self.frame,
            label,
            line: self.line,
        });
        self.emit(Op::Branch { target: 0 }, InstructionKind::Branch, guard)
    }
}
