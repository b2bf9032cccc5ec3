//! A picture: title, legend, groups of lines, axis.

use svg::Document;
use svg::node::element::{
    Description, Group as Layer, Line as Stroke, Rectangle, Style, Text, Title,
};

use super::palette::{self, Palette, Shape, Slot, rounded};
use super::scale::{Scale, Span};
use super::units::Axis;

const WIDTH: f64 = 800.0;
const MARGIN: f64 = 14.0;
/// Right of the axis: half of a tick's label.
const AXIS_MARGIN: f64 = 30.0;
const TITLES_HEIGHT: f64 = 54.0;
const LEGEND_HEIGHT: f64 = 24.0;
const LINE_HEIGHT: f64 = 22.0;
const GROUP_GAP: f64 = 10.0;
const AXIS_HEIGHT: f64 = 46.0;
const BAR_HEIGHT: f64 = 14.0;
/// Of a character at 13 units, rather too wide than too narrow: nobody knows the reader's font.
const CHARACTER_WIDTH: f64 = 7.6;
const BOLD_CHARACTER_WIDTH: f64 = 8.4;
const PERCENTILES: [(Shape, &str); 5] = [
    (Shape::Circle, "p50"),
    (Shape::Triangle, "p95"),
    (Shape::Diamond, "p99"),
    (Shape::Square, "p99.9"),
    (Shape::Bar, "max"),
];

/// What a picture shows.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    /// The whole message in words, for those who do not see the picture.
    pub(crate) message: String,
    pub(crate) axis: Axis,
    pub(crate) legend: Legend,
    /// Figures and labels for which there is room although this picture does not have them, so
    /// that the axes of several pictures lie below each other.
    pub(crate) room: Room,
    pub(crate) groups: Vec<Group>,
}

/// What else an axis reaches, and what else stands beside it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room {
    pub(crate) figures: Vec<f64>,
    pub(crate) labels: Vec<String>,
}

/// What explains the marks.
#[derive(Clone, Debug)]
pub(crate) enum Legend {
    Words(String),
    Percentiles,
    /// What the solid and the hatched part of a bar are.
    Parts([&'static str; 2]),
}

/// Lines that are compared with each other.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) label: String,
    pub(crate) lines: Vec<Line>,
}

/// The marks of one store.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) store: String,
    pub(crate) marks: Marks,
    /// Figures at the left and at the right of the marks.
    pub(crate) before: String,
    pub(crate) after: String,
}

/// The marks along a line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Marks {
    /// A median and how far the repeats are apart.
    Range { low: f64, median: f64, high: f64 },
    /// p50, p95, p99, p99.9 and the maximum.
    Percentiles([f64; 5]),
    /// A bar of a solid part and a hatched one, which may be zero.
    Bar([f64; 2]),
}

impl Marks {
    fn figures(&self) -> Vec<f64> {
        match *self {
            Self::Range { low, median, high } => vec![low, median, high],
            Self::Percentiles(figures) => figures.to_vec(),
            Self::Bar([solid, hatched]) => vec![solid + hatched],
        }
    }
}

/// Where the columns of a picture are.
struct Columns {
    /// The mark and the name of the store.
    store: f64,
    scale: Scale,
}

impl Chart {
    /// The picture as text.
    pub(crate) fn draw(&self, palette: &Palette) -> String {
        let columns = self.columns();
        let top = TITLES_HEIGHT + LEGEND_HEIGHT;
        let lines: usize = self.groups.iter().map(|group| group.lines.len()).sum();
        let bottom = top + lines as f64 * LINE_HEIGHT + self.groups.len() as f64 * GROUP_GAP;
        let height = bottom + AXIS_HEIGHT;
        let mut layers = vec![self.axis(&columns.scale, top, bottom)];
        let mut y = top;
        for group in &self.groups {
            layers.push(group.draw(&columns, y, palette));
            y += group.height();
        }
        let frame = Document::new()
            .set("viewBox", (0, 0, WIDTH, height))
            .set("width", WIDTH)
            .set("height", height)
            .set("role", "img")
            .set("aria-labelledby", "title desc")
            .add(Title::new(format!("{}: {}", self.title, self.subtitle)).set("id", "title"))
            .add(Description::new().set("id", "desc").add(svg::node::Text::new(&self.message)))
            .add(Style::new(palette::style()))
            .add(rectangle(0.0, 0.0, WIDTH, height).set("class", "ground").set("rx", 6))
            .add(text(MARGIN, 24.0, &self.title).set("class", "title"))
            .add(text(MARGIN, 44.0, &self.subtitle).set("class", "note"))
            .add(self.legend.draw(TITLES_HEIGHT + LEGEND_HEIGHT / 2.0));
        let frame = if self.axis == Axis::Size { frame.add(palette::hatchings()) } else { frame };
        layers.into_iter().fold(frame, Document::add).to_string() + "\n"
    }

    fn columns(&self) -> Columns {
        let longest = |texts: &mut dyn Iterator<Item = &str>| {
            texts.map(|text| text.chars().count()).max().unwrap_or(0) as f64
        };
        let lines = || self.groups.iter().flat_map(|group| &group.lines);
        let labels = self.groups.iter().map(|group| group.label.as_str());
        let labels = &mut labels.chain(self.room.labels.iter().map(String::as_str));
        let store = MARGIN + longest(labels) * BOLD_CHARACTER_WIDTH + 16.0;
        let names = &mut lines().map(|line| line.store.as_str());
        let from = store + longest(names) * CHARACTER_WIDTH + 20.0;
        let (free_left, free_right) = self.axis.free();
        let figures = lines().flat_map(|line| line.marks.figures());
        let span = Span { from, to: WIDTH - AXIS_MARGIN, free_left, free_right };
        let figures = figures.chain(self.room.figures.iter().copied());
        Columns { store, scale: Scale::new(self.axis.kind(), figures, span) }
    }

    fn axis(&self, scale: &Scale, top: f64, bottom: f64) -> Layer {
        let Span { from, to, .. } = scale.span();
        let mut layer = Layer::new();
        for tick in scale.ticks() {
            let Some(x) = scale.place(tick) else { continue };
            let label = text(x, bottom + 18.0, &self.axis.tick(tick));
            layer = layer
                .add(stroke(x, top, x, bottom).set("class", "grid"))
                .add(label.set("class", "tick").set("text-anchor", "middle"));
        }
        let title = text((from + to) / 2.0, bottom + 36.0, self.axis.title());
        layer
            .add(stroke(from, bottom, to, bottom).set("class", "axis"))
            .add(title.set("class", "tick").set("text-anchor", "middle"))
    }
}

impl Group {
    fn height(&self) -> f64 {
        self.lines.len() as f64 * LINE_HEIGHT + GROUP_GAP
    }

    /// The label stands beside the first line.
    fn draw(&self, columns: &Columns, top: f64, palette: &Palette) -> Layer {
        let first = top + GROUP_GAP / 2.0 + LINE_HEIGHT / 2.0;
        let mut layer = Layer::new()
            .add(stroke(MARGIN, top, WIDTH - MARGIN, top).set("class", "grid"))
            .add(text(MARGIN, first + 4.5, &self.label).set("class", "group"));
        let mut y = first;
        for line in &self.lines {
            let slot = palette.slot(&line.store);
            layer = layer
                .add(slot.shape().at(columns.store, y).set("class", slot.class()))
                .add(text(columns.store + 12.0, y + 4.5, &line.store));
            layer = line.draw(layer, columns.scale, y, slot);
            y += LINE_HEIGHT;
        }
        layer
    }
}

impl Line {
    fn draw(&self, layer: Layer, scale: Scale, y: f64, slot: Slot) -> Layer {
        let places = self.marks.figures().into_iter().filter_map(|figure| scale.place(figure));
        let places: Vec<f64> = places.collect();
        let from = scale.span().from;
        let first = places.iter().copied().reduce(f64::min).unwrap_or(from);
        let last = places.iter().copied().reduce(f64::max).unwrap_or(from);
        let before = text(first - 10.0, y + 4.5, &self.before).set("text-anchor", "end");
        let before = before.set("class", "figure");
        let after = text(last + 10.0, y + 4.5, &self.after).set("class", "figure");
        let layer = match self.marks {
            Marks::Range { median, .. } => {
                let layer = layer.add(stroke(first, y, last, y).set("class", "span"));
                add_mark(layer, slot.shape(), scale.place(median), y, slot)
            }
            Marks::Percentiles(figures) => {
                let layer = layer.add(stroke(first, y, last, y).set("class", "span"));
                let marks = PERCENTILES.iter().zip(figures);
                marks.fold(layer, |layer, ((shape, _), figure)| {
                    add_mark(layer, *shape, scale.place(figure), y, slot)
                })
            }
            Marks::Bar([solid, _]) => {
                let middle = scale.place(solid).unwrap_or(from);
                let top = y - BAR_HEIGHT / 2.0;
                let hatched = rectangle(middle, top, last - middle, BAR_HEIGHT)
                    .set("class", "mark")
                    .set("fill", slot.hatching());
                layer
                    .add(hatched)
                    .add(rectangle(from, top, middle - from, BAR_HEIGHT).set("class", slot.class()))
            }
        };
        let layer = if self.before.is_empty() { layer } else { layer.add(before) };
        layer.add(after)
    }
}

fn add_mark(layer: Layer, shape: Shape, place: Option<f64>, y: f64, slot: Slot) -> Layer {
    match place {
        Some(x) => layer.add(shape.at(x, y).set("class", slot.class())),
        None => layer,
    }
}

impl Legend {
    fn draw(&self, y: f64) -> Layer {
        let layer = Layer::new();
        match self {
            Self::Words(words) => layer.add(text(MARGIN, y + 4.5, words).set("class", "note")),
            Self::Percentiles => {
                let mut x = MARGIN + 6.0;
                PERCENTILES.iter().fold(layer, |layer, (shape, name)| {
                    let mark = shape.at(x, y).set("class", "plain");
                    let name_at = text(x + 12.0, y + 4.5, name).set("class", "note");
                    x += 36.0 + name.len() as f64 * CHARACTER_WIDTH;
                    layer.add(mark).add(name_at)
                })
            }
            Self::Parts(names) => {
                let mut x = MARGIN;
                let fills = ["mark s0", "mark"];
                names.iter().zip(fills).fold(layer, |layer, (name, class)| {
                    let bar = rectangle(x, y - BAR_HEIGHT / 2.0, 24.0, BAR_HEIGHT);
                    let name_at = text(x + 32.0, y + 4.5, name).set("class", "note");
                    x += 60.0 + name.len() as f64 * CHARACTER_WIDTH;
                    layer.add(bar.set("class", class).set("fill", "url(#h0)")).add(name_at)
                })
            }
        }
    }
}

fn text(x: f64, y: f64, content: &str) -> Text {
    Text::new(content).set("x", rounded(x)).set("y", rounded(y))
}

fn stroke(x1: f64, y1: f64, x2: f64, y2: f64) -> Stroke {
    Stroke::new()
        .set("x1", rounded(x1))
        .set("y1", rounded(y1))
        .set("x2", rounded(x2))
        .set("y2", rounded(y2))
}

fn rectangle(x: f64, y: f64, width: f64, height: f64) -> Rectangle {
    Rectangle::new()
        .set("x", rounded(x))
        .set("y", rounded(y))
        .set("width", rounded(width))
        .set("height", rounded(height))
}
