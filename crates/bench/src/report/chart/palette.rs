//! Colours and shapes, legible in light and dark.
//!
//! 1. A picture paints its own ground, white or nearly black as the reader prefers, so that it
//!    stays legible on any page: no colour of text has a contrast of 4.5 to both grounds.
//! 2. Text has a contrast of 4.5 to its ground, and every mark an outline in the text's colour.
//! 3. Colours are Okabe and Ito's, which colour-blind readers tell apart, and never the only cue:
//!    a store has a shape and its name beside each line, and what is mapped is hatched.

use std::collections::BTreeSet;

use svg::node::element::{Definitions, Path, Pattern, Rectangle};

use crate::store::StoreKind;

/// The colours of one ground.
struct Theme {
    ground: &'static str,
    text: &'static str,
    muted: &'static str,
    grid: &'static str,
}

const LIGHT: Theme =
    Theme { ground: "#ffffff", text: "#1f2328", muted: "#59636e", grid: "#d1d9e0" };
const DARK: Theme = Theme { ground: "#0d1117", text: "#f0f6fc", muted: "#9198a1", grid: "#3d444d" };

/// Okabe and Ito's blue, vermilion, bluish green, reddish purple, orange, sky blue and yellow.
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442"];

/// A store's place among colours and shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(usize);

/// Which store has which colour and shape, the same in all pictures of a page.
#[derive(Clone, Debug)]
pub(crate) struct Palette(Vec<String>);

impl Palette {
    /// The engine and the oracle always have the first two places.
    pub(crate) fn new<'a>(stores: impl Iterator<Item = &'a str>) -> Self {
        let first = [StoreKind::Sediment.name(), StoreKind::ORACLE.name()];
        let others: BTreeSet<&str> = stores.filter(|store| !first.contains(store)).collect();
        Self(first.into_iter().chain(others).map(str::to_owned).collect())
    }

    pub(super) fn slot(&self, store: &str) -> Slot {
        Slot(self.0.iter().position(|name| name == store).unwrap_or(0))
    }
}

impl Slot {
    /// The class that fills with the store's colour. Beyond seven stores colours come again.
    pub(super) fn class(self) -> String {
        format!("mark s{}", self.0 % COLOURS.len())
    }

    pub(super) fn hatching(self) -> String {
        format!("url(#h{})", self.0 % COLOURS.len())
    }

    pub(super) fn shape(self) -> Shape {
        Shape::STORES[self.0 % Shape::STORES.len()]
    }
}

/// The outline of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Circle,
    Square,
    Triangle,
    Diamond,
    TriangleDown,
    Plus,
    Hexagon,
    Bar,
}

impl Shape {
    const STORES: [Self; 7] = [
        Self::Circle,
        Self::Square,
        Self::Triangle,
        Self::Diamond,
        Self::TriangleDown,
        Self::Plus,
        Self::Hexagon,
    ];

    /// The mark around a place; all shapes look about equally large.
    pub(super) fn at(self, x: f64, y: f64) -> Path {
        let corners: &[(f64, f64)] = match self {
            Self::Circle => &[],
            Self::Square => &[(-4.5, -4.5), (4.5, -4.5), (4.5, 4.5), (-4.5, 4.5)],
            Self::Triangle => &[(0.0, -5.5), (5.5, 4.5), (-5.5, 4.5)],
            Self::Diamond => &[(0.0, -6.5), (6.5, 0.0), (0.0, 6.5), (-6.5, 0.0)],
            Self::TriangleDown => &[(0.0, 5.5), (5.5, -4.5), (-5.5, -4.5)],
            Self::Plus => &[
                (-2.0, -6.0),
                (2.0, -6.0),
                (2.0, -2.0),
                (6.0, -2.0),
                (6.0, 2.0),
                (2.0, 2.0),
                (2.0, 6.0),
                (-2.0, 6.0),
                (-2.0, 2.0),
                (-6.0, 2.0),
                (-6.0, -2.0),
                (-2.0, -2.0),
            ],
            Self::Hexagon => {
                &[(-3.0, -5.2), (3.0, -5.2), (6.0, 0.0), (3.0, 5.2), (-3.0, 5.2), (-6.0, 0.0)]
            }
            Self::Bar => &[(-1.5, -7.0), (1.5, -7.0), (1.5, 7.0), (-1.5, 7.0)],
        };
        let mut data = String::new();
        for (number, (dx, dy)) in corners.iter().enumerate() {
            let command = if number == 0 { 'M' } else { 'L' };
            data += &format!("{command}{},{} ", rounded(x + dx), rounded(y + dy));
        }
        if self == Self::Circle {
            data =
                format!("M{},{} a5,5 0 1 0 10,0 a5,5 0 1 0 -10,0 ", rounded(x - 5.0), rounded(y));
        }
        Path::new().set("d", data + "Z")
    }
}

/// A tenth of a unit is finer than any screen, and the same on every machine.
pub(super) fn rounded(place: f64) -> f64 {
    // Adding zero turns -0 into 0.
    (place * 10.0).round() / 10.0 + 0.0
}

/// The style of every picture.
pub(super) fn style() -> String {
    let mut style = String::from(
        "text{font-family:system-ui,-apple-system,\"Segoe UI\",\"Noto Sans\",\"DejaVu Sans\",\
         sans-serif;font-size:13px}.title{font-size:15px}.title,.group{font-weight:600}\
         .tick{font-size:12px}.grid,.axis,.span{stroke-width:1}.span{stroke-width:2}\
         .mark{stroke-width:1}.figure{stroke-width:4;stroke-linejoin:round;paint-order:stroke}",
    );
    for (slot, colour) in COLOURS.iter().enumerate() {
        style += &format!(".s{slot}{{fill:{colour}}}");
    }
    style += &themed(&LIGHT);
    style + "@media (prefers-color-scheme:dark){" + &themed(&DARK) + "}"
}

fn themed(theme: &Theme) -> String {
    let Theme { ground, text, muted, grid } = theme;
    format!(
        ".ground{{fill:{ground}}}text{{fill:{text}}}.tick,.note{{fill:{muted}}}\
         .grid{{stroke:{grid}}}.axis,.span{{stroke:{muted}}}.mark{{stroke:{text}}}\
         .plain{{fill:{ground};stroke:{text}}}.figure{{stroke:{ground}}}"
    )
}

/// The hatchings, one a colour.
pub(super) fn hatchings() -> Definitions {
    let pattern = |slot: usize| {
        let line =
            Rectangle::new().set("class", format!("s{slot}")).set("width", 3).set("height", 6);
        Pattern::new()
            .set("id", format!("h{slot}"))
            .set("width", 6)
            .set("height", 6)
            .set("patternUnits", "userSpaceOnUse")
            .set("patternTransform", "rotate(45)")
            .add(line)
    };
    (0..COLOURS.len()).map(pattern).fold(Definitions::new(), Definitions::add)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as WCAG 2 defines it.
    fn luminance(colour: &str) -> f64 {
        let channel = |from: usize| {
            let value = u8::from_str_radix(&colour[from..from + 2], 16).unwrap();
            let share = f64::from(value) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(left: &str, right: &str) -> f64 {
        let (left, right) = (luminance(left), luminance(right));
        (left.max(right) + 0.05) / (left.min(right) + 0.05)
    }

    #[test]
    fn text_and_outlines_stand_out_from_both_grounds() {
        assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 1e-9);
        for theme in [LIGHT, DARK] {
            assert!(contrast(theme.text, theme.ground) >= 7.0);
            assert!(contrast(theme.muted, theme.ground) >= 4.5);
        }
    }

    #[test]
    fn the_engine_and_the_oracle_stand_out_without_their_outline() {
        for theme in [LIGHT, DARK] {
            for colour in &COLOURS[..2] {
                assert!(contrast(colour, theme.ground) >= 3.0, "{colour} on {}", theme.ground);
            }
        }
    }

    #[test]
    fn a_store_keeps_its_place_whatever_the_order() {
        let palette = Palette::new(["redb", "rocksdb", "lmdb"].into_iter());
        let slots = ["sediment", "rocksdb", "lmdb", "redb"].map(|store| palette.slot(store));
        assert_eq!(slots, [Slot(0), Slot(1), Slot(2), Slot(3)]);
        let shapes: BTreeSet<String> =
            slots.iter().map(|slot| format!("{:?}", slot.shape())).collect();
        assert_eq!(shapes.len(), 4);
    }

    #[test]
    fn a_style_can_stand_inside_a_picture() {
        assert!(!style().contains(['<', '>', '&']), "would be escaped, and not be CSS any more");
    }
}
