//! The page's files, as they stand in `src/ui/page`, in the program itself. Plain HTML, CSS and ES modules of
//! our own: nothing is built, nothing comes from elsewhere.

use golang::fnv;

/// One file.
pub(crate) struct PageFile {
    /// Where the page asks for it.
    pub(crate) path: &'static str,
    /// As HTTP names it.
    pub(crate) content_type: &'static str,
    /// What stands in it.
    pub(crate) text: &'static str,
}

/// All of them together, so that the page stays light.
#[cfg(test)]
const MAX_BYTES: usize = 300 * 1024;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

macro_rules! page {
    ($($path:literal $name:literal $content_type:ident,)*) => {
        const FILES: &[PageFile] = &[$(PageFile {
            path: $path,
            content_type: $content_type,
            text: include_str!(concat!("page/", $name)),
        }),*];
    };
}

page! {
    "/" "index.html" HTML,
    "/page/style.css" "style.css" CSS,
    "/page/icon.svg" "icon.svg" PICTURE,
    "/page/main.js" "main.js" SCRIPT,
    "/page/api.js" "api.js" SCRIPT,
    "/page/dom.js" "dom.js" SCRIPT,
    "/page/record.js" "record.js" SCRIPT,
    "/page/map.js" "map.js" SCRIPT,
    "/page/movement.js" "movement.js" SCRIPT,
    "/page/picture.js" "picture.js" SCRIPT,
    "/page/dots.js" "dots.js" SCRIPT,
    "/page/fitting.js" "fitting.js" SCRIPT,
    "/page/stepping.js" "stepping.js" SCRIPT,
    "/page/story.js" "story.js" SCRIPT,
    "/page/happened.js" "happened.js" SCRIPT,
    "/page/objects.js" "objects.js" SCRIPT,
    "/page/applying.js" "applying.js" SCRIPT,
    "/page/caused.js" "caused.js" SCRIPT,
    "/page/containers.js" "containers.js" SCRIPT,
    "/page/yaml.js" "yaml.js" SCRIPT,
    "/page/terminal.js" "terminal.js" SCRIPT,
    "/page/lessons.js" "lessons.js" SCRIPT,
}

/// The file that is asked for at a path.
pub(crate) fn named(path: &str) -> Option<&'static PageFile> {
    FILES.iter().find(|file| file.path == path)
}

impl PageFile {
    /// What changes when the file does (an `ETag`): FNV-1a of its bytes.
    pub(crate) fn tag(&self) -> String {
        format!("\"{:016x}\"", fnv::sum_64a(self.text.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_light_and_asks_only_for_what_is_there() {
        assert!(FILES.iter().map(|file| file.text.len()).sum::<usize>() < MAX_BYTES);
        for file in FILES {
            for word in file.text.split(['"', '\'', '`']) {
                let is_file = word.starts_with("/page/") || word.starts_with("./");
                let path = word.replacen("./", "/page/", 1);
                assert!(!is_file || named(&path).is_some(), "{} names {word}", file.path);
            }
        }
    }

    #[test]
    fn no_file_names_another_server_or_brings_a_script_in_line() {
        for file in FILES {
            let text = file.text.replace("http://www.w3.org/", "");
            assert!(!text.contains("http://") && !text.contains("https://"), "{}", file.path);
            for inline in ["<style", " style=", " onclick=", "javascript:", "eval(", "innerHTML"] {
                assert!(!text.contains(inline), "{} has {inline}", file.path);
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_part_of_the_page() {
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/page")).unwrap();
        let names = folder.map(|file| file.unwrap().file_name().into_string().unwrap());
        let is_asked_for = |name: &String| name == "index.html" || named(&format!("/page/{name}")).is_some();
        assert_eq!(names.filter(|name| !is_asked_for(name)).collect::<Vec<_>>(), [] as [&str; 0]);
    }
}
