//! Nouns.

use super::Gender::{self, Feminine, Masculine};
use super::Kind::{self, *};
use super::Noun;

const fn noun(
    english: [&'static str; 2],
    spanish: [&'static str; 2],
    gender: Gender,
    kind: Kind,
) -> Noun {
    Noun {
        english,
        spanish,
        gender,
        kind,
        preposition: None,
    }
}

/// A mass noun.
const fn mass(english: &'static str, spanish: &'static str, gender: Gender, kind: Kind) -> Noun {
    noun([english, english], [spanish, spanish], gender, kind)
}

impl Noun {
    const fn place(mut self, preposition: &'static str) -> Self {
        self.preposition = Some(preposition);
        self
    }
}

/// Every noun.
#[rustfmt::skip] // A table: one row per noun.
pub(crate) const NOUNS: &[Noun] = &[
    noun(["boy", "boys"], ["niño", "niños"], Masculine, Child),
    noun(["girl", "girls"], ["niña", "niñas"], Feminine, Child),
    noun(["man", "men"], ["hombre", "hombres"], Masculine, Adult),
    noun(["woman", "women"], ["mujer", "mujeres"], Feminine, Adult),
    noun(["king", "kings"], ["rey", "reyes"], Masculine, Adult),
    noun(["queen", "queens"], ["reina", "reinas"], Feminine, Adult),
    noun(["actor", "actors"], ["actor", "actores"], Masculine, Adult),
    noun(["actress", "actresses"], ["actriz", "actrices"], Feminine, Adult),
    noun(["brother", "brothers"], ["hermano", "hermanos"], Masculine, Kin),
    noun(["sister", "sisters"], ["hermana", "hermanas"], Feminine, Kin),
    noun(["uncle", "uncles"], ["tío", "tíos"], Masculine, Kin),
    noun(["aunt", "aunts"], ["tía", "tías"], Feminine, Kin),
    noun(["grandfather", "grandfathers"], ["abuelo", "abuelos"], Masculine, Kin),
    noun(["grandmother", "grandmothers"], ["abuela", "abuelas"], Feminine, Kin),
    noun(["dog", "dogs"], ["perro", "perros"], Masculine, Animal),
    noun(["cat", "cats"], ["gato", "gatos"], Masculine, Animal),
    noun(["horse", "horses"], ["caballo", "caballos"], Masculine, Animal),
    noun(["rabbit", "rabbits"], ["conejo", "conejos"], Masculine, Animal),
    noun(["mouse", "mice"], ["ratón", "ratones"], Masculine, Animal),
    noun(["duck", "ducks"], ["pato", "patos"], Masculine, Animal),
    noun(["cow", "cows"], ["vaca", "vacas"], Feminine, Animal),
    noun(["hen", "hens"], ["gallina", "gallinas"], Feminine, Animal),
    noun(["turtle", "turtles"], ["tortuga", "tortugas"], Feminine, Animal),
    noun(["goat", "goats"], ["cabra", "cabras"], Feminine, Animal),
    noun(["apple", "apples"], ["manzana", "manzanas"], Feminine, Fruit),
    noun(["orange", "oranges"], ["naranja", "naranjas"], Feminine, Fruit),
    noun(["pear", "pears"], ["pera", "peras"], Feminine, Fruit),
    noun(["banana", "bananas"], ["plátano", "plátanos"], Masculine, Fruit),
    noun(["melon", "melons"], ["melón", "melones"], Masculine, Fruit),
    noun(["egg", "eggs"], ["huevo", "huevos"], Masculine, Produce),
    noun(["tomato", "tomatoes"], ["tomate", "tomates"], Masculine, Produce),
    noun(["potato", "potatoes"], ["patata", "patatas"], Feminine, Produce),
    noun(["onion", "onions"], ["cebolla", "cebollas"], Feminine, Produce),
    noun(["cake", "cakes"], ["pastel", "pasteles"], Masculine, Sweet),
    noun(["cookie", "cookies"], ["galleta", "galletas"], Feminine, Sweet),
    mass("bread", "pan", Masculine, Staple),
    mass("cheese", "queso", Masculine, Staple),
    mass("fish", "pescado", Masculine, Meat),
    mass("meat", "carne", Feminine, Meat),
    mass("rice", "arroz", Masculine, Cooked),
    mass("soup", "sopa", Feminine, Cooked),
    mass("water", "agua", Feminine, Plain),
    mass("milk", "leche", Feminine, Plain),
    mass("coffee", "café", Masculine, Brewed),
    mass("tea", "té", Masculine, Brewed),
    mass("chocolate", "chocolate", Masculine, Brewed),
    noun(["book", "books"], ["libro", "libros"], Masculine, Text),
    noun(["poem", "poems"], ["poema", "poemas"], Masculine, Text),
    noun(["story", "stories"], ["cuento", "cuentos"], Masculine, Text),
    noun(["letter", "letters"], ["carta", "cartas"], Feminine, Text),
    noun(["novel", "novels"], ["novela", "novelas"], Feminine, Text),
    noun(["dress", "dresses"], ["vestido", "vestidos"], Masculine, Clothing),
    noun(["hat", "hats"], ["sombrero", "sombreros"], Masculine, Clothing),
    noun(["shoe", "shoes"], ["zapato", "zapatos"], Masculine, Clothing),
    noun(["coat", "coats"], ["abrigo", "abrigos"], Masculine, Clothing),
    noun(["shirt", "shirts"], ["camisa", "camisas"], Feminine, Clothing),
    noun(["skirt", "skirts"], ["falda", "faldas"], Feminine, Clothing),
    noun(["bag", "bags"], ["bolso", "bolsos"], Masculine, Vessel),
    noun(["package", "packages"], ["paquete", "paquetes"], Masculine, Vessel),
    noun(["box", "boxes"], ["caja", "cajas"], Feminine, Vessel),
    noun(["suitcase", "suitcases"], ["maleta", "maletas"], Feminine, Vessel),
    noun(["plate", "plates"], ["plato", "platos"], Masculine, Fragile),
    noun(["glass", "glasses"], ["vaso", "vasos"], Masculine, Fragile),
    noun(["mirror", "mirrors"], ["espejo", "espejos"], Masculine, Fragile),
    noun(["cup", "cups"], ["taza", "tazas"], Feminine, Fragile),
    noun(["bottle", "bottles"], ["botella", "botellas"], Feminine, Fragile),
    noun(["sofa", "sofas"], ["sofá", "sofás"], Masculine, Furniture),
    noun(["desk", "desks"], ["escritorio", "escritorios"], Masculine, Furniture),
    noun(["chair", "chairs"], ["silla", "sillas"], Feminine, Furniture),
    noun(["table", "tables"], ["mesa", "mesas"], Feminine, Furniture),
    noun(["bed", "beds"], ["cama", "camas"], Feminine, Furniture),
    noun(["door", "doors"], ["puerta", "puertas"], Feminine, Opening),
    noun(["window", "windows"], ["ventana", "ventanas"], Feminine, Opening),
    noun(["car", "cars"], ["coche", "coches"], Masculine, Vehicle),
    noun(["boat", "boats"], ["barco", "barcos"], Masculine, Vehicle),
    noun(["bicycle", "bicycles"], ["bicicleta", "bicicletas"], Feminine, Vehicle),
    noun(["phone", "phones"], ["teléfono", "teléfonos"], Masculine, Small),
    noun(["clock", "clocks"], ["reloj", "relojes"], Masculine, Small),
    noun(["knife", "knives"], ["cuchillo", "cuchillos"], Masculine, Small),
    noun(["ball", "balls"], ["pelota", "pelotas"], Feminine, Small),
    noun(["key", "keys"], ["llave", "llaves"], Feminine, Small),
    noun(["tree", "trees"], ["árbol", "árboles"], Masculine, Plant),
    noun(["flower", "flowers"], ["flor", "flores"], Feminine, Plant),
    noun(["garden", "gardens"], ["jardín", "jardines"], Masculine, Home).place("in"),
    noun(["house", "houses"], ["casa", "casas"], Feminine, Home).place("in"),
    noun(["kitchen", "kitchens"], ["cocina", "cocinas"], Feminine, Home).place("in"),
    noun(["room", "rooms"], ["habitación", "habitaciones"], Feminine, Home).place("in"),
    noun(["park", "parks"], ["parque", "parques"], Masculine, Public).place("in"),
    noun(["museum", "museums"], ["museo", "museos"], Masculine, Public).place("in"),
    noun(["school", "schools"], ["escuela", "escuelas"], Feminine, Public).place("at"),
    noun(["library", "libraries"], ["biblioteca", "bibliotecas"], Feminine, Public).place("in"),
    noun(["market", "markets"], ["mercado", "mercados"], Masculine, Shop).place("at"),
    noun(["shop", "shops"], ["tienda", "tiendas"], Feminine, Shop).place("in"),
    noun(["river", "rivers"], ["río", "ríos"], Masculine, Shore).place("at"),
    noun(["lake", "lakes"], ["lago", "lagos"], Masculine, Shore).place("at"),
    noun(["beach", "beaches"], ["playa", "playas"], Feminine, Shore).place("at"),
    noun(["village", "villages"], ["pueblo", "pueblos"], Masculine, Town).place("in"),
    noun(["city", "cities"], ["ciudad", "ciudades"], Feminine, Town).place("in"),
    noun(["island", "islands"], ["isla", "islas"], Feminine, Town).place("on"),
];
