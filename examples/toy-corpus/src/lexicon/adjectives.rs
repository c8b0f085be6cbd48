//! Adjectives: their forms, their verb "to be", and the nouns they go with.

use super::Adjective;
use super::Copula::{self, Estar, Ser};
use super::Kind::{self, *};

const fn adjective(
    english: &'static str,
    spanish: [&'static str; 4],
    copula: Copula,
    kinds: &'static [Kind],
) -> Adjective {
    Adjective {
        english,
        comparative: None,
        spanish,
        before_noun: None,
        copula,
        kinds,
    }
}

impl Adjective {
    const fn compared(mut self, comparative: &'static str) -> Self {
        self.comparative = Some(comparative);
        self
    }

    const fn before_noun(mut self, short: &'static str) -> Self {
        self.before_noun = Some(short);
        self
    }
}

/// Things of any colour.
const COLOURED: &[Kind] = &[
    Clothing, Vessel, Fragile, Furniture, Opening, Vehicle, Small, Home,
];
/// Black and white are the colours of animals too.
const BLACK_OR_WHITE: &[Kind] = &[
    Animal, Clothing, Vessel, Fragile, Furniture, Opening, Vehicle, Small, Home,
];
const SIZED: &[Kind] = &[
    Animal, Fruit, Produce, Sweet, Clothing, Vessel, Fragile, Furniture, Opening, Vehicle, Small,
    Plant, Home, Public, Shop, Shore, Town,
];
const AGED: &[Kind] = &[
    Adult, Animal, Text, Clothing, Furniture, Vehicle, Small, Plant, Home, Public, Shop, Town,
];
const RENEWED: &[Kind] = &[
    Text, Clothing, Furniture, Vehicle, Small, Vessel, Home, Public,
];
const PEOPLE: &[Kind] = &[Child, Adult, Kin];
const GROWN: &[Kind] = &[Adult, Kin];
const LIVING: &[Kind] = &[Child, Adult, Kin, Animal];
const LOOKED_AT: &[Kind] = &[
    Clothing, Fragile, Furniture, Vehicle, Plant, Home, Public, Shore, Town,
];
const SOLD: &[Kind] = &[
    Fruit, Sweet, Staple, Text, Clothing, Vessel, Fragile, Furniture, Vehicle, Small,
];
const WASHED: &[Kind] = &[
    Clothing, Fragile, Furniture, Opening, Vehicle, Home, Shop, Shore, Town,
];
const SERVED: &[Kind] = &[Plain, Brewed, Cooked, Meat];
const HARVESTED: &[Kind] = &[Fruit, Produce, Staple, Meat];
const TASTED: &[Kind] = &[Fruit, Produce, Sweet, Staple, Meat, Cooked, Brewed];
const JUDGED: &[Kind] = &[Child, Adult, Kin, Animal, Text, Vehicle];
const CARRIED: &[Kind] = &[Vessel, Furniture];
const BROKEN: &[Kind] = &[Fragile, Furniture, Vehicle, Small];
const FILLED: &[Kind] = &[Vessel, Shop, Public];
const KNOWN: &[Kind] = &[Adult, Text, Public, Town];
const CALM: &[Kind] = &[Home, Public, Shore, Town];

/// Every adjective.
#[rustfmt::skip] // A table: one row per adjective.
pub(crate) const ADJECTIVES: &[Adjective] = &[
    adjective("red", ["rojo", "roja", "rojos", "rojas"], Ser, COLOURED),
    adjective("yellow", ["amarillo", "amarilla", "amarillos", "amarillas"], Ser, COLOURED),
    adjective("green", ["verde", "verde", "verdes", "verdes"], Ser, COLOURED),
    adjective("blue", ["azul", "azul", "azules", "azules"], Ser, COLOURED),
    adjective("black", ["negro", "negra", "negros", "negras"], Ser, BLACK_OR_WHITE),
    adjective("white", ["blanco", "blanca", "blancos", "blancas"], Ser, BLACK_OR_WHITE),
    adjective("big", ["grande", "grande", "grandes", "grandes"], Ser, SIZED).compared("bigger"),
    adjective("small", ["pequeño", "pequeña", "pequeños", "pequeñas"], Ser, SIZED).compared("smaller"),
    adjective("old", ["viejo", "vieja", "viejos", "viejas"], Ser, AGED).compared("older"),
    adjective("new", ["nuevo", "nueva", "nuevos", "nuevas"], Ser, RENEWED).compared("newer"),
    adjective("young", ["joven", "joven", "jóvenes", "jóvenes"], Ser, &[Adult]).compared("younger"),
    adjective("tall", ["alto", "alta", "altos", "altas"], Ser, PEOPLE).compared("taller"),
    adjective("strong", ["fuerte", "fuerte", "fuertes", "fuertes"], Ser, LIVING).compared("stronger"),
    adjective("kind", ["amable", "amable", "amables", "amables"], Ser, PEOPLE).compared("kinder"),
    adjective("rich", ["rico", "rica", "ricos", "ricas"], Ser, GROWN).compared("richer"),
    adjective("poor", ["pobre", "pobre", "pobres", "pobres"], Ser, GROWN).compared("poorer"),
    adjective("sad", ["triste", "triste", "tristes", "tristes"], Estar, LIVING),
    adjective("happy", ["feliz", "feliz", "felices", "felices"], Estar, LIVING),
    adjective("tired", ["cansado", "cansada", "cansados", "cansadas"], Estar, LIVING),
    adjective("sick", ["enfermo", "enferma", "enfermos", "enfermas"], Estar, LIVING),
    adjective("pretty", ["bonito", "bonita", "bonitos", "bonitas"], Ser, LOOKED_AT).compared("prettier"),
    adjective("ugly", ["feo", "fea", "feos", "feas"], Ser, LOOKED_AT).compared("uglier"),
    adjective("expensive", ["caro", "cara", "caros", "caras"], Ser, SOLD).compared("more expensive"),
    adjective("cheap", ["barato", "barata", "baratos", "baratas"], Ser, SOLD).compared("cheaper"),
    adjective("clean", ["limpio", "limpia", "limpios", "limpias"], Estar, WASHED).compared("cleaner"),
    adjective("dirty", ["sucio", "sucia", "sucios", "sucias"], Estar, WASHED).compared("dirtier"),
    adjective("cold", ["frío", "fría", "fríos", "frías"], Estar, SERVED).compared("colder"),
    adjective("hot", ["caliente", "caliente", "calientes", "calientes"], Estar, SERVED).compared("hotter"),
    adjective("fresh", ["fresco", "fresca", "frescos", "frescas"], Estar, HARVESTED),
    adjective("sweet", ["dulce", "dulce", "dulces", "dulces"], Ser, &[Fruit, Sweet]).compared("sweeter"),
    adjective("delicious", ["delicioso", "deliciosa", "deliciosos", "deliciosas"], Estar, TASTED),
    adjective("good", ["bueno", "buena", "buenos", "buenas"], Ser, JUDGED).before_noun("buen"),
    adjective("bad", ["malo", "mala", "malos", "malas"], Ser, JUDGED).before_noun("mal"),
    adjective("long", ["largo", "larga", "largos", "largas"], Ser, &[Text]).compared("longer"),
    adjective("short", ["corto", "corta", "cortos", "cortas"], Ser, &[Text]).compared("shorter"),
    adjective("fast", ["rápido", "rápida", "rápidos", "rápidas"], Ser, &[Animal, Vehicle]).compared("faster"),
    adjective("slow", ["lento", "lenta", "lentos", "lentas"], Ser, &[Animal, Vehicle]).compared("slower"),
    adjective("empty", ["vacío", "vacía", "vacíos", "vacías"], Estar, FILLED),
    adjective("full", ["lleno", "llena", "llenos", "llenas"], Estar, FILLED),
    adjective("heavy", ["pesado", "pesada", "pesados", "pesadas"], Ser, CARRIED).compared("heavier"),
    adjective("broken", ["roto", "rota", "rotos", "rotas"], Estar, BROKEN),
    adjective("famous", ["famoso", "famosa", "famosos", "famosas"], Ser, KNOWN).compared("more famous"),
    adjective("quiet", ["tranquilo", "tranquila", "tranquilos", "tranquilas"], Ser, CALM).compared("quieter"),
];
