// SPDX-License-Identifier: Apache-2.0
//! Measures gimli's addr2line and blazesym on the same work, in process:
//!   cairn-bench-peers gimli|gimli-eager|blazesym FILE ADDRESSES
//! ADDRESSES is a file with one hexadecimal address per line. Prints lines of "name value"; seconds are CPU time of the
//! single thread, rates are addresses per second with all frames (function, file, line), the better of two passes after
//! everything is parsed.
use std::hint::black_box;

type Failure = Box<dyn std::error::Error>;

fn cpu_s() -> f64 {
    let mut t = Timespec { s: 0, ns: 0 };
    unsafe { clock_gettime(3 /* CLOCK_THREAD_CPUTIME_ID */, &mut t) };
    t.s as f64 + t.ns as f64 / 1e9
}

#[repr(C)]
struct Timespec {
    s: i64,
    ns: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, ret: *mut Timespec) -> i32;
}

fn addresses(path: &str) -> Result<Vec<u64>, Failure> {
    std::fs::read_to_string(path)?
        .lines()
        .map(|l| Ok(u64::from_str_radix(l.trim_start_matches("0x"), 16)?))
        .collect()
}

/// Run a pass over all addresses three times; the first one may include parsing.
fn passes(count: usize, mut pass: impl FnMut() -> Result<u64, Failure>) -> Result<(), Failure> {
    let mut warm = f64::MAX;
    let mut frames = 0;
    for n in 0..3 {
        let start = cpu_s();
        frames = pass()?;
        let took = cpu_s() - start;
        if n == 0 {
            println!("first {:.0}", count as f64 / took);
        } else {
            warm = warm.min(took);
        }
    }
    println!("warm {:.0}", count as f64 / warm);
    println!("frames {frames}");
    Ok(())
}

fn gimli(file: &str, all: &[u64]) -> Result<(), Failure> {
    let loader = addr2line::Loader::new(file).map_err(|e| e.to_string())?;
    passes(all.len(), || {
        let mut count = 0;
        for &a in all {
            let mut frames = loader.find_frames(a).map_err(|e| e.to_string())?;
            while let Some(f) = frames.next()? {
                if let Some(function) = &f.function {
                    black_box(function.raw_name()?);
                }
                black_box(f.location.map(|l| (l.file.map(str::len), l.line)));
                count += 1;
            }
        }
        Ok(count)
    })
}

/// Parse everything up front: lines, functions, inlined functions.
fn gimli_eager(file: &str) -> Result<(), Failure> {
    use gimli::Section;
    let bytes = std::fs::read(file)?;
    let start = cpu_s();
    let sections = elf_sections(&bytes)?;
    let find = |name: &str| sections.iter().find(|s| s.0 == name).map_or(&[][..], |s| s.1);
    let dwarf = gimli::Dwarf::load(|id| Ok::<_, Failure>(gimli::EndianSlice::new(find(id.name()), gimli::LittleEndian)))?;
    let unpacked: usize = sections.iter().filter(|s| s.0.starts_with(".debug_")).map(|s| s.1.len()).sum();
    let has_aranges = !gimli::DebugAranges::load(|id| Ok::<_, Failure>(gimli::EndianSlice::new(find(id.name()), gimli::LittleEndian)))?
        .reader()
        .is_empty();
    let context = addr2line::Context::from_dwarf(dwarf)?;
    context.parse_lines()?;
    context.parse_functions()?;
    context.parse_inlined_functions()?;
    println!("seconds {:.3}", cpu_s() - start);
    println!("debug_bytes {unpacked}");
    println!("aranges {has_aranges}");
    Ok(())
}

/// Sections of a little-endian 64-bit ELF file without compressed sections.
fn elf_sections(b: &[u8]) -> Result<Vec<(&str, &[u8])>, Failure> {
    let u16_at = |at: usize| u16::from_le_bytes(b[at..at + 2].try_into().unwrap()) as usize;
    let u32_at = |at: usize| u32::from_le_bytes(b[at..at + 4].try_into().unwrap()) as usize;
    let u64_at = |at: usize| u64::from_le_bytes(b[at..at + 8].try_into().unwrap()) as usize;
    let (table, size, count, names) = (u64_at(40), u16_at(58), u16_at(60), u16_at(62));
    let names = u64_at(table + names * size + 24);
    let mut ret = Vec::new();
    for h in (0..count).map(|i| table + i * size) {
        let name = &b[names + u32_at(h)..];
        let end = name.iter().position(|&c| c == 0).ok_or("a name without end")?;
        if u32_at(h + 4) == 8 {
            continue; // SHT_NOBITS
        }
        if u64_at(h + 8) & 0x800 != 0 {
            return Err("compressed sections: unpack them with objcopy first".into());
        }
        ret.push((std::str::from_utf8(&name[..end])?, &b[u64_at(h + 24)..u64_at(h + 24) + u64_at(h + 32)]));
    }
    Ok(ret)
}

fn blazesym(file: &str, all: &[u64]) -> Result<(), Failure> {
    use ::blazesym::symbolize::{source, Input, Symbolized, Symbolizer};
    let symbolizer = Symbolizer::builder().enable_demangling(false).enable_auto_reload(false).build();
    let elf = source::Source::Elf(source::Elf::new(file));
    passes(all.len(), || {
        let mut count = 0;
        // Batch sizes of typical users: one or several stack traces.
        for some in all.chunks(1000) {
            for s in symbolizer.symbolize(&elf, Input::VirtOffset(some))? {
                if let Symbolized::Sym(sym) = s {
                    count += 1 + sym.inlined.len() as u64;
                    black_box(sym);
                }
            }
        }
        Ok(count)
    })
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[1..] {
        ["gimli", file, list] => gimli(file, &addresses(list)?),
        ["gimli-eager", file] => gimli_eager(file),
        ["blazesym", file, list] => blazesym(file, &addresses(list)?),
        _ => Err("usage: cairn-bench-peers gimli|gimli-eager|blazesym FILE [ADDRESSES]".into()),
    }
}
