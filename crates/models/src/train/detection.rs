//! Batches of images with objects, and the loss of a detector: each object is matched with one of the model's boxes.

use burn::tensor::{
    DType, Int, Tensor, TensorData,
    activation::{log_sigmoid, sigmoid},
};
use burn::train::SequenceOutput;
use pathfinding::{kuhn_munkres::kuhn_munkres_min, matrix::Matrix};

use super::{Targets, TokenBatch, step::for_metrics};

/// The weights of the class, the distance and the overlap of a box, in the matching and in the loss.
const CLASS: f64 = 2.0;
const DISTANCE: f64 = 5.0;
const OVERLAP: f64 = 2.0;
/// The α and γ of the focal loss: the weight of objects, and how much less easy pairs count.
const ALPHA: f64 = 0.25;
const GAMMA: i32 = 2;
/// How far a box may be beyond the image, because its sides are rounded.
const SLACK: f32 = 1e-3;
/// The cost of a box whose numbers are not finite: more than that of any other box.
const UNFIT: f64 = 1e6;

/// Images to train a detector on. Each object counts as one token, whose number is its class. Labels are not smoothed.
#[derive(Clone, Debug)]
pub struct DetectionBatch {
    /// `[batch, channels, height, width]`: the input of the model.
    pub images: Tensor<4>,
    /// The classes of the objects of each image, `[batch, objects]`.
    pub targets: Targets,
    /// For each image the class of each object and its box: centre x, centre y, width and height as fractions of the image.
    pub objects: Vec<Vec<(u32, [f32; 4])>>,
}

/// The predictions of a detector, or of one of its layers. They are not the output of [`Detr`](crate::detr::Detr), whose last class is for no object.
#[derive(Clone, Debug)]
pub struct Predictions {
    /// A logit of every class for every box, `[batch, boxes, n_classes]`, each for a sigmoid: there is no class for no object.
    pub logits: Tensor<3>,
    /// Centre x, centre y, width and height, `[batch, boxes, 4]`, from 0 to 1.
    pub boxes: Tensor<3>,
}

impl DetectionBatch {
    /// A batch of images and the objects in them.
    ///
    /// # Panics
    ///
    /// When the numbers of images and lists of objects differ, and when a side of a box is not a fraction of the image.
    pub fn new(images: Tensor<4>, objects: Vec<Vec<(u32, [f32; 4])>>) -> Self {
        let ([batch, ..], device) = (images.dims(), images.device());
        assert!(
            batch == objects.len(),
            "DetectionBatch: there are {batch} images, but objects of {}",
            objects.len()
        );
        for (image, objects) in objects.iter().enumerate() {
            let is_fraction = |side: &f32| (-SLACK..=1.0 + SLACK).contains(side);
            let unfit = objects
                .iter()
                .find(|(_, sides)| !sides.iter().all(is_fraction));
            if let Some((_, sides)) = unfit {
                panic!(
                    "DetectionBatch: the box {sides:?} of image {image} is not in fractions of the image, from 0 to 1"
                );
            }
        }
        let count: usize = objects.iter().map(Vec::len).sum();
        let classes = |objects: &Vec<(u32, _)>| objects.iter().map(|(class, _)| *class).collect();
        let classes: Vec<Vec<u32>> = objects.iter().map(classes).collect();
        let mut targets = Targets::of(&classes, &device);
        if count == 0 {
            // Metrics need a token for each image.
            targets.tokens = Tensor::zeros([batch, 1], &device);
            targets.weights = Tensor::zeros([batch, 1], &device);
        }
        Self {
            images,
            targets,
            objects,
        }
    }

    /// The loss of the predictions of a detector's layers, first to last, divided by the batch's divisor, `[1]`, with a graph if the predictions have
    /// one; and the input of metrics: the loss, and the logits of the boxes that the objects were matched with in the last layer.
    ///
    /// For each layer, objects and boxes are matched one to one such that the sum of the costs is smallest (the Hungarian algorithm). The loss is the
    /// sum over the layers. A box with numbers that are not finite is matched only if no other box is left.
    ///
    /// ```text
    /// cost = 2 · (focal(p, 1) − focal(p, 0)) + 5 · |a − b| − 2 · GIoU(a, b)             p of the object's class
    /// loss = 2 · focal of all boxes and classes + 5 · |a − b| + 2 · (1 − GIoU(a, b)) of the pairs
    /// ```
    ///
    /// # Panics
    ///
    /// When there is no layer, shapes differ, an object has a class that the model does not know, an image has more objects than boxes, or the
    /// labels are smoothed.
    ///
    /// # Cost
    ///
    /// Waits for the device once a layer, and reads logits and boxes. The matching takes `objects² · boxes` operations an image.
    ///
    /// # Source
    ///
    /// "Deformable DETR" (arXiv:2010.04159), whose weights these are; the matching is that of "End-to-end object detection with transformers"
    /// (arXiv:2005.12872), section 3.1, the focal loss that of arXiv:1708.02002, GIoU that of arXiv:1902.09630.
    pub fn loss(&self, layers: &[Predictions]) -> (Tensor<1>, SequenceOutput) {
        let smoothing = self.targets.smoothing;
        assert!(
            smoothing == 0.0,
            "DetectionBatch: labels of objects are not smoothed, got smoothing {smoothing}"
        );
        let pairs: Vec<_> = layers.iter().map(|layer| self.pairs(layer)).collect();
        let losses = layers.iter().zip(&pairs);
        let losses = losses.map(|(layer, pairs)| self.loss_of(layer, pairs));
        let sum = losses.reduce(|sum, loss| sum + loss);
        let (Some(sum), [.., layer], [.., pairs]) = (sum, layers, &pairs[..]) else {
            panic!("DetectionBatch: there is no layer");
        };
        let Targets { count, divisor, .. } = self.targets;
        let shown = sum.clone().inner() / count.max(1) as f64;
        let logits = self.of_objects(layer, pairs);
        let output = SequenceOutput::new(shown, logits, None, self.targets.tokens.clone());
        (sum / divisor as f64, output)
    }

    /// For each image, the box of each object.
    fn pairs(&self, layer: &Predictions) -> Vec<Vec<usize>> {
        let [batch, n_boxes, n_classes] = layer.logits.dims();
        assert!(
            batch == self.objects.len() && layer.boxes.dims() == [batch, n_boxes, 4],
            "DetectionBatch: logits of {:?} and boxes of {:?} for {} images",
            layer.logits.dims(),
            layer.boxes.dims(),
            self.objects.len()
        );
        let numbers = |tensor: &Tensor<3>| -> Vec<f32> {
            tensor.clone().inner().into_data().iter().collect()
        };
        let (logits, boxes) = (numbers(&layer.logits), numbers(&layer.boxes));
        let images = self.objects.iter().enumerate();
        let pairs = images.map(|(image, objects)| {
            assert!(
                objects.len() <= n_boxes,
                "DetectionBatch: {} objects in an image for {n_boxes} boxes",
                objects.len()
            );
            if let Some((class, _)) = objects
                .iter()
                .find(|(class, _)| *class as usize >= n_classes)
            {
                panic!(
                    "DetectionBatch: an object of class {class} for a model of {n_classes} classes"
                );
            }
            if objects.is_empty() {
                return Vec::new();
            }
            let cost = |(object, index): (usize, usize)| {
                let (class, expected) = objects[object];
                let at = image * n_boxes + index;
                let found = std::array::from_fn(|side| boxes[at * 4 + side]);
                let logit = logits[at * n_classes + class as usize];
                let cost = cost(logit, found, expected);
                let cost = if cost.is_finite() { cost } else { UNFIT };
                // In whole numbers, so that the matching ends.
                (1e6 * cost.min(UNFIT)) as i64
            };
            let costs = Matrix::from_fn(objects.len(), n_boxes, cost);
            kuhn_munkres_min(&costs).1
        });
        pairs.collect()
    }

    fn loss_of(&self, layer: &Predictions, pairs: &[Vec<usize>]) -> Tensor<1> {
        let [batch, n_boxes, n_classes] = layer.logits.dims();
        let device = layer.logits.device();
        let mut hits = vec![0.0f32; batch * n_boxes * n_classes];
        let (mut rows, mut expected) = (Vec::new(), Vec::<f32>::new());
        for (image, (objects, boxes)) in self.objects.iter().zip(pairs).enumerate() {
            for ((class, sides), index) in objects.iter().zip(boxes) {
                let row = image * n_boxes + index;
                hits[row * n_classes + *class as usize] = 1.0;
                rows.push(row as i32);
                expected.extend(sides);
            }
        }
        let hits = TensorData::new(hits, [batch, n_boxes, n_classes]);
        let hits = Tensor::from_data(hits, (&device, DType::F32));
        let classes = focal(layer.logits.clone().cast(DType::F32), hits);
        if rows.is_empty() {
            return classes * CLASS;
        }
        let expected = TensorData::new(expected, [rows.len(), 4]);
        let expected = Tensor::<2>::from_data(expected, (&device, DType::F32));
        let rows = Tensor::<1, Int>::from_data(rows.as_slice(), &device);
        let found = layer.boxes.clone().cast(DType::F32);
        let found = found.reshape([batch * n_boxes, 4]).select(0, rows);
        let distance = (found.clone() - expected.clone()).abs().sum();
        let overlap = (generalized_iou(found, expected).neg() + 1.0).sum();
        classes * CLASS + distance * DISTANCE + overlap * OVERLAP
    }

    /// The logits of the boxes of all objects, `[batch, objects, n_classes]`; where an image has fewer, those of its first box.
    fn of_objects(&self, layer: &Predictions, pairs: &[Vec<usize>]) -> Tensor<3> {
        let [batch, n_boxes, n_classes] = layer.logits.dims();
        let [_, most] = self.targets.tokens.dims();
        let rows = pairs.iter().enumerate().flat_map(|(image, boxes)| {
            let filled = boxes.iter().chain(std::iter::repeat(&0)).take(most);
            filled.map(move |index| (image * n_boxes + index) as i32)
        });
        let rows: Vec<i32> = rows.collect();
        let logits = layer.logits.clone().inner();
        let logits = logits.reshape([batch * n_boxes, n_classes]);
        let rows = Tensor::<1, Int>::from_data(rows.as_slice(), &logits.device());
        for_metrics(logits.select(0, rows).reshape([batch, most, n_classes]))
    }
}

impl TokenBatch for DetectionBatch {
    fn targets(&mut self) -> &mut Targets {
        &mut self.targets
    }
}

/// The cost of matching a box with an object.
fn cost(logit: f32, found: [f32; 4], expected: [f32; 4]) -> f64 {
    let p = 1.0 / (1.0 + (-f64::from(logit)).exp());
    // How much the focal loss grows if the box is not matched.
    let hit = -ALPHA * (1.0 - p).powi(GAMMA) * p.max(1e-12).ln();
    let miss = -(1.0 - ALPHA) * p.powi(GAMMA) * (1.0 - p).max(1e-12).ln();
    let distance: f64 = (0..4)
        .map(|side| f64::from((found[side] - expected[side]).abs()))
        .sum();
    let edges = |[x, y, width, height]: [f32; 4]| {
        [
            [x - width / 2.0, x + width / 2.0],
            [y - height / 2.0, y + height / 2.0],
        ]
    };
    let (one, other) = (edges(found), edges(expected));
    let shared = |axis: usize| {
        let ([first, last], [start, end]) = (one[axis], other[axis]);
        (last.min(end) - first.max(start)).max(0.0)
    };
    let hull = |axis: usize| {
        let ([first, last], [start, end]) = (one[axis], other[axis]);
        last.max(end) - first.min(start)
    };
    let area = |[_, _, width, height]: [f32; 4]| width * height;
    let both = shared(0) * shared(1);
    let union = area(found) + area(expected) - both;
    let hull = hull(0) * hull(1);
    let giou = both / union.max(1e-9) - (hull - union) / hull.max(1e-9);
    CLASS * (hit - miss) + DISTANCE * distance - OVERLAP * f64::from(giou)
}

/// The focal loss of all pairs of a box and a class, of which `hits` are 1: a sum.
fn focal(logits: Tensor<3>, hits: Tensor<3>) -> Tensor<1> {
    let p = sigmoid(logits.clone());
    let of_hit = log_sigmoid(logits.clone()) * (p.clone().neg() + 1.0).powi_scalar(GAMMA) * -ALPHA;
    let of_miss = log_sigmoid(logits.neg()) * p.powi_scalar(GAMMA) * (ALPHA - 1.0);
    (of_hit * hits.clone() + of_miss * (hits.neg() + 1.0)).sum()
}

/// The generalised intersection over union of pairs of boxes, `[pairs, 4]` each: `[pairs, 1]`, from -1 to 1.
fn generalized_iou(one: Tensor<2>, other: Tensor<2>) -> Tensor<2> {
    let corners = |boxes: &Tensor<2>| {
        let (centre, half) = (
            boxes.clone().narrow(1, 0, 2),
            boxes.clone().narrow(1, 2, 2) / 2.0,
        );
        (centre.clone() - half.clone(), centre + half)
    };
    // Width times height.
    let area = |size: Tensor<2>| size.clone().narrow(1, 0, 1) * size.narrow(1, 1, 1);
    let ((start, end), (first, last)) = (corners(&one), corners(&other));
    let shared = end.clone().min_pair(last.clone()) - start.clone().max_pair(first.clone());
    let shared = area(shared.clamp_min(0.0));
    let hull = area(end.max_pair(last) - start.min_pair(first));
    let union = area(one.narrow(1, 2, 2)) + area(other.narrow(1, 2, 2)) - shared.clone();
    shared / union.clone().clamp_min(1e-9) - (hull.clone() - union) / hull.clamp_min(1e-9)
}
