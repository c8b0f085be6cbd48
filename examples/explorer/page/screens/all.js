// The screens in the order of the computation.

import { cutScreen } from "./cut.js";
import { decodeScreen } from "./decode.js";
import { embedScreen } from "./embed.js";
import { maskScreen } from "./mask.js";
import { mergeScreen } from "./merge.js";
import { outputScreen } from "./output.js";
import { projectScreen } from "./project.js";
import { readScreen } from "./read.js";
import { scaleScreen } from "./scale.js";
import { scoresScreen } from "./scores.js";
import { softmaxScreen } from "./softmax.js";
import { splitScreen } from "./split.js";
import { sumScreen } from "./sum.js";

export const SCREENS = [
  readScreen,
  embedScreen,
  projectScreen,
  splitScreen,
  scoresScreen,
  scaleScreen,
  maskScreen,
  softmaxScreen,
  sumScreen,
  mergeScreen,
  outputScreen,
  decodeScreen,
  cutScreen,
];
