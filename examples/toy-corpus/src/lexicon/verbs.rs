//! Verbs: every form is written out, regular or not.

use super::Kind::{self, *};
use super::{Movement, Verb};

const fn verb(
    english: [&'static str; 3],
    infinitive: &'static str,
    present: [&'static str; 5],
    past: [&'static str; 5],
) -> Verb {
    Verb {
        english,
        infinitive,
        present,
        past,
        objects: &[],
        animal_objects: None,
        places: &[],
        movement: Movement::Stays,
        with_company: false,
        for_someone: false,
        accident: false,
        possession: false,
        past_needs_time: false,
    }
}

impl Verb {
    const fn takes(mut self, objects: &'static [Kind]) -> Self {
        self.objects = objects;
        self
    }

    const fn animals(mut self, objects: &'static [Kind]) -> Self {
        self.animal_objects = Some(objects);
        self
    }

    const fn at(mut self, places: &'static [Kind]) -> Self {
        self.places = places;
        self
    }

    const fn goes_to(mut self, places: &'static [Kind]) -> Self {
        self.movement = Movement::Goes;
        self.places = places;
        self
    }

    const fn with_company(mut self) -> Self {
        self.with_company = true;
        self
    }

    const fn for_someone(mut self) -> Self {
        self.for_someone = true;
        self
    }

    const fn accident(mut self) -> Self {
        self.accident = true;
        self
    }

    const fn possession(mut self) -> Self {
        self.possession = true;
        self
    }

    const fn past_needs_time(mut self) -> Self {
        self.past_needs_time = true;
        self
    }
}

const FOOD: &[Kind] = &[Fruit, Produce, Sweet, Staple, Meat, Cooked];
const GOODS: &[Kind] = &[
    Fruit, Produce, Sweet, Staple, Meat, Text, Clothing, Vessel, Fragile, Furniture, Vehicle, Small,
];
const SIGHTS: &[Kind] = &[
    Child, Adult, Kin, Animal, Vehicle, Plant, Home, Public, Shop, Shore, Town,
];
const SOUGHT: &[Kind] = &[Child, Kin, Animal, Text, Clothing, Vessel, Small];
const PRESENTS: &[Kind] = &[
    Fruit, Sweet, Staple, Meat, Text, Clothing, Vessel, Fragile, Furniture, Small, Plant,
];
const BELONGINGS: &[Kind] = &[
    Kin, Animal, Text, Clothing, Vessel, Furniture, Vehicle, Small, Home,
];

/// Every verb that a clause is made of.
#[rustfmt::skip] // A table: the same four rows per verb.
pub(crate) const VERBS: &[Verb] = &[
    verb(["eat", "eats", "ate"], "comer", ["como", "comes", "come", "comemos", "comen"],
        ["comí", "comiste", "comió", "comimos", "comieron"])
        .takes(FOOD).animals(&[Fruit, Produce, Staple]).at(&[Home, Public, Shore]).with_company(),
    verb(["cook", "cooks", "cooked"], "cocinar", ["cocino", "cocinas", "cocina", "cocinamos", "cocinan"],
        ["cociné", "cocinaste", "cocinó", "cocinamos", "cocinaron"])
        .takes(&[Produce, Meat, Cooked]).at(&[Home]).with_company().for_someone(),
    verb(["buy", "buys", "bought"], "comprar", ["compro", "compras", "compra", "compramos", "compran"],
        ["compré", "compraste", "compró", "compramos", "compraron"])
        .takes(GOODS).at(&[Shop, Town]).for_someone(),
    verb(["sell", "sells", "sold"], "vender", ["vendo", "vendes", "vende", "vendemos", "venden"],
        ["vendí", "vendiste", "vendió", "vendimos", "vendieron"])
        .takes(GOODS).at(&[Shop, Town]),
    verb(["drink", "drinks", "drank"], "beber", ["bebo", "bebes", "bebe", "bebemos", "beben"],
        ["bebí", "bebiste", "bebió", "bebimos", "bebieron"])
        .takes(&[Plain, Brewed]).animals(&[Plain]).at(&[Home, Public]),
    verb(["read", "reads", "read"], "leer", ["leo", "lees", "lee", "leemos", "leen"],
        ["leí", "leíste", "leyó", "leímos", "leyeron"])
        .takes(&[Text]).at(&[Home, Public, Shore]).past_needs_time(),
    verb(["write", "writes", "wrote"], "escribir", ["escribo", "escribes", "escribe", "escribimos", "escriben"],
        ["escribí", "escribiste", "escribió", "escribimos", "escribieron"])
        .takes(&[Text]).at(&[Home, Public]).for_someone(),
    verb(["see", "sees", "saw"], "ver", ["veo", "ves", "ve", "vemos", "ven"],
        ["vi", "viste", "vio", "vimos", "vieron"])
        .takes(SIGHTS).animals(&[Child, Adult, Kin, Animal]).at(&[Public, Shop, Shore, Town]),
    verb(["wash", "washes", "washed"], "lavar", ["lavo", "lavas", "lava", "lavamos", "lavan"],
        ["lavé", "lavaste", "lavó", "lavamos", "lavaron"])
        .takes(&[Clothing, Fragile, Vehicle, Fruit, Produce]).at(&[Home]),
    verb(["open", "opens", "opened"], "abrir", ["abro", "abres", "abre", "abrimos", "abren"],
        ["abrí", "abriste", "abrió", "abrimos", "abrieron"])
        .takes(&[Opening, Vessel]),
    verb(["close", "closes", "closed"], "cerrar", ["cierro", "cierras", "cierra", "cerramos", "cierran"],
        ["cerré", "cerraste", "cerró", "cerramos", "cerraron"])
        .takes(&[Opening, Vessel]),
    verb(["find", "finds", "found"], "encontrar", ["encuentro", "encuentras", "encuentra", "encontramos", "encuentran"],
        ["encontré", "encontraste", "encontró", "encontramos", "encontraron"])
        .takes(SOUGHT).animals(&[Animal, Produce]).at(&[Public, Shop, Shore, Town]),
    verb(["look for", "looks for", "looked for"], "buscar", ["busco", "buscas", "busca", "buscamos", "buscan"],
        ["busqué", "buscaste", "buscó", "buscamos", "buscaron"])
        .takes(SOUGHT).animals(&[Animal, Produce]).at(&[Home, Public, Shop, Town]),
    verb(["lose", "loses", "lost"], "perder", ["pierdo", "pierdes", "pierde", "perdemos", "pierden"],
        ["perdí", "perdiste", "perdió", "perdimos", "perdieron"])
        .takes(&[Text, Clothing, Vessel, Small]).at(&[Public, Shop, Shore, Town]).accident(),
    verb(["bring", "brings", "brought"], "traer", ["traigo", "traes", "trae", "traemos", "traen"],
        ["traje", "trajiste", "trajo", "trajimos", "trajeron"])
        .takes(PRESENTS).for_someone(),
    verb(["paint", "paints", "painted"], "pintar", ["pinto", "pintas", "pinta", "pintamos", "pintan"],
        ["pinté", "pintaste", "pintó", "pintamos", "pintaron"])
        .takes(&[Vessel, Furniture, Opening, Vehicle]),
    verb(["break", "breaks", "broke"], "romper", ["rompo", "rompes", "rompe", "rompemos", "rompen"],
        ["rompí", "rompiste", "rompió", "rompimos", "rompieron"])
        .takes(&[Fragile, Opening, Small]).at(&[Home]).accident(),
    verb(["visit", "visits", "visited"], "visitar", ["visito", "visitas", "visita", "visitamos", "visitan"],
        ["visité", "visitaste", "visitó", "visitamos", "visitaron"])
        .takes(&[Child, Adult, Kin, Public, Shop, Town]),
    verb(["help", "helps", "helped"], "ayudar", ["ayudo", "ayudas", "ayuda", "ayudamos", "ayudan"],
        ["ayudé", "ayudaste", "ayudó", "ayudamos", "ayudaron"])
        .takes(&[Child, Adult, Kin]).at(&[Home, Public, Shop]),
    verb(["have", "has", "had"], "tener", ["tengo", "tienes", "tiene", "tenemos", "tienen"],
        ["tenía", "tenías", "tenía", "teníamos", "tenían"])
        .takes(BELONGINGS).possession(),
    verb(["sleep", "sleeps", "slept"], "dormir", ["duermo", "duermes", "duerme", "dormimos", "duermen"],
        ["dormí", "dormiste", "durmió", "dormimos", "durmieron"])
        .animals(&[]).at(&[Home, Shore]),
    verb(["run", "runs", "ran"], "correr", ["corro", "corres", "corre", "corremos", "corren"],
        ["corrí", "corriste", "corrió", "corrimos", "corrieron"])
        .animals(&[]).at(&[Public, Shore, Town]).with_company(),
    verb(["sing", "sings", "sang"], "cantar", ["canto", "cantas", "canta", "cantamos", "cantan"],
        ["canté", "cantaste", "cantó", "cantamos", "cantaron"])
        .at(&[Home, Public, Town]).with_company(),
    verb(["dance", "dances", "danced"], "bailar", ["bailo", "bailas", "baila", "bailamos", "bailan"],
        ["bailé", "bailaste", "bailó", "bailamos", "bailaron"])
        .at(&[Home, Public, Shore, Town]).with_company(),
    verb(["work", "works", "worked"], "trabajar", ["trabajo", "trabajas", "trabaja", "trabajamos", "trabajan"],
        ["trabajé", "trabajaste", "trabajó", "trabajamos", "trabajaron"])
        .at(&[Home, Public, Shop, Town]).with_company(),
    verb(["swim", "swims", "swam"], "nadar", ["nado", "nadas", "nada", "nadamos", "nadan"],
        ["nadé", "nadaste", "nadó", "nadamos", "nadaron"])
        .animals(&[]).at(&[Shore]).with_company(),
    verb(["play", "plays", "played"], "jugar", ["juego", "juegas", "juega", "jugamos", "juegan"],
        ["jugué", "jugaste", "jugó", "jugamos", "jugaron"])
        .animals(&[]).at(&[Home, Public, Shore, Town]).with_company(),
    verb(["study", "studies", "studied"], "estudiar", ["estudio", "estudias", "estudia", "estudiamos", "estudian"],
        ["estudié", "estudiaste", "estudió", "estudiamos", "estudiaron"])
        .at(&[Home, Public]).with_company(),
    verb(["rest", "rests", "rested"], "descansar", ["descanso", "descansas", "descansa", "descansamos", "descansan"],
        ["descansé", "descansaste", "descansó", "descansamos", "descansaron"])
        .animals(&[]).at(&[Home, Public, Shore]),
    verb(["go", "goes", "went"], "ir", ["voy", "vas", "va", "vamos", "van"],
        ["fui", "fuiste", "fue", "fuimos", "fueron"])
        .goes_to(&[Home, Public, Shop, Shore, Town]).with_company(),
    verb(["return", "returns", "returned"], "volver", ["vuelvo", "vuelves", "vuelve", "volvemos", "vuelven"],
        ["volví", "volviste", "volvió", "volvimos", "volvieron"])
        .animals(&[]).goes_to(&[Home, Public, Shop, Shore, Town]).with_company(),
    verb(["come", "comes", "came"], "venir", ["vengo", "vienes", "viene", "venimos", "vienen"],
        ["vine", "viniste", "vino", "vinimos", "vinieron"])
        .animals(&[]).goes_to(&[Home, Public, Shop, Shore, Town]).with_company(),
];
