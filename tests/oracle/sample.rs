// SPDX-License-Identifier: Apache-2.0
// Generics, traits, closures and iterators, to compare DWARF readers.
use std::collections::{BTreeMap, HashMap};
use std::fmt::{Debug, Display};
use std::rc::Rc;

trait Shape {
    fn area(&self) -> f64;
    fn name(&self) -> String {
        String::from("shape")
    }
}

struct Square<T>(T);
struct Circle {
    radius: f64,
}

impl<T: Copy + Into<f64>> Shape for Square<T> {
    fn area(&self) -> f64 {
        let side: f64 = self.0.into();
        side * side
    }
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        self.radius * self.radius * 3.14
    }
    fn name(&self) -> String {
        format!("circle {:.1}", self.radius)
    }
}

mod words {
    use super::*;

    pub fn count<'a>(text: &'a str) -> HashMap<&'a str, usize> {
        let mut found = HashMap::new();
        for w in text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()) {
            *found.entry(w).or_insert(0) += 1;
        }
        found
    }

    pub fn show<K: Display + Ord, V: Debug>(table: &BTreeMap<K, V>) -> String {
        table.iter().map(|(k, v)| format!("{}={:?}", k, v)).collect::<Vec<_>>().join(",")
    }
}

fn compose<A, B, C>(f: impl Fn(A) -> B, g: impl Fn(B) -> C) -> impl Fn(A) -> C {
    move |x| g(f(x))
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let shapes: Vec<Rc<dyn Shape>> = vec![Rc::new(Square(2.0f32)), Rc::new(Square(3i32)), Rc::new(Circle { radius: 1.5 })];
    let mut sorted: Vec<_> = shapes.iter().map(|s| (s.name(), s.area())).collect();
    sorted.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap().then_with(|| a.0.cmp(&b.0)));
    let table: BTreeMap<String, usize> =
        words::count(&arguments.join(" ")).into_iter().map(|(k, v)| (k.to_uppercase(), v)).collect();
    let twice = compose(|x: usize| x + 1, |y| y * 2);
    println!("{} {:?} {}", words::show(&table), sorted, twice(arguments.len()));
}
