//! What languages are called.

use std::collections::BTreeMap;

/// The codes of languages, and their names in English. `jw` is Javanese, whose code in ISO 639-1 is `jv`.
const NAMES: &str = "\
    af afrikaans,am amharic,ar arabic,as assamese,az azerbaijani,ba bashkir,be belarusian,bg bulgarian,bn bengali,bo tibetan,br breton,bs bosnian,\
    ca catalan,ca valencian,cs czech,cy welsh,da danish,de german,el greek,en english,es castilian,es spanish,et estonian,eu basque,fa persian,\
    fi finnish,fo faroese,fr french,gl galician,gu gujarati,ha hausa,haw hawaiian,he hebrew,hi hindi,hr croatian,ht haitian,ht haitian creole,\
    hu hungarian,hy armenian,id indonesian,is icelandic,it italian,ja japanese,jw javanese,ka georgian,kk kazakh,km khmer,kn kannada,ko korean,\
    la latin,lb letzeburgesch,lb luxembourgish,ln lingala,lo lao,lt lithuanian,lv latvian,mg malagasy,mi maori,mk macedonian,ml malayalam,\
    mn mongolian,mr marathi,ms malay,mt maltese,my burmese,my myanmar,ne nepali,nl dutch,nl flemish,nn nynorsk,no norwegian,oc occitan,\
    pa panjabi,pa punjabi,pl polish,ps pashto,ps pushto,pt portuguese,ro moldavian,ro moldovan,ro romanian,ru russian,sa sanskrit,sd sindhi,\
    si sinhala,si sinhalese,sk slovak,sl slovenian,sn shona,so somali,sq albanian,sr serbian,su sundanese,sv swedish,sw swahili,ta tamil,te telugu,\
    tg tajik,th thai,tk turkmen,tl tagalog,tr turkish,tt tatar,uk ukrainian,ur urdu,uz uzbek,vi vietnamese,yi yiddish,yo yoruba,yue cantonese,\
    zh chinese,zh mandarin";

/// The code of one of these `languages`, which may be given by its code, its token such as `<|en|>`, or its name, in upper or lower case.
pub(super) fn known_code(languages: &BTreeMap<String, u32>, language: &str) -> Option<String> {
    let language = language.to_lowercase();
    let language = code(&language);
    let mut names = NAMES.split(',').filter_map(|pair| pair.split_once(' '));
    let named = names.find(|(_, name)| *name == language);
    let code = named.map_or(language, |(code, _)| code);
    languages.contains_key(code).then(|| code.to_owned())
}

/// The code in the name of a language's token: `en` in `<|en|>`.
pub(super) fn code(name: &str) -> &str {
    name.trim_matches(['<', '|', '>'])
}
