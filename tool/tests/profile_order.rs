//! `snug profile`: a real program's largest sites, by samples as by a record of every block.

use std::collections::HashMap;
use std::fs;

use crate::common::{assert_clean, Place};
use serde_json::Value;

/// Does the same each time, with a seed for its hashes.
const SCRIPT: &str = r#"
my (%texts, @keys);
for my $i (1 .. 40000) { my $key = "key" . ($i * 7919 % 20011); $texts{$key} .= "value $i "; push @keys, $key if $i % 3 == 0; }
my @sorted = sort { $texts{$a} cmp $texts{$b} } keys %texts;
my $joined = join ",", map { uc substr($texts{$_}, 0, 20) } @sorted;
my %groups; push @{$groups{length $texts{$_}}}, $_ for @sorted;
$joined =~ s/(\d+)/<$1>/g;
my @words = split /,/, $joined;
my @records = map { { name => $_, list => [1 .. 5] } } @words[0 .. 4000];
print scalar(@sorted), " ", scalar(@words), " ", scalar(@records), "\n";
"#;

const LARGEST: usize = 20;
const MEAN: f64 = 4096.0;

/// How far an estimate may be off: five standard errors, and what the error itself, an estimate too, leaves out where
/// a site has few samples: blocks of several times the mean that were missed.
fn tolerance(error: f64) -> f64 {
    5.0 * error + 4.0 * MEAN
}

/// Bytes that were allocated and their standard error, by the stack.
fn sites(place: &Place, mean: &str) -> HashMap<String, (f64, f64)> {
    let words =
        ["profile", "-o", "p.json", mean, "env", "PERL_HASH_SEED=0", "PERL_PERTURB_KEYS=0", "perl", "script.pl"];
    assert_clean(&place.output(&words));
    let json: Value = serde_json::from_slice(&fs::read(place.path("p.json")).unwrap()).unwrap();
    let number = |site: &Value, name: &str| site["numbers"][name].as_f64().unwrap();
    let sites = json["sites"].as_array().unwrap().iter();
    sites
        .map(|site| {
            let numbers = (number(site, "allocated_bytes"), number(site, "allocated_error_bytes"));
            (site["stack"].to_string(), numbers)
        })
        .collect()
}

/// Two of the largest sites may change places only where their difference is within what the samples can tell.
#[test]
fn the_largest_sites_are_in_order() {
    let place = Place::new();
    place.write("script.pl", SCRIPT, 0o644);
    let exact = sites(&place, "SNUG_PROFILE_BYTES=1");
    let sampled = sites(&place, &format!("SNUG_PROFILE_BYTES={MEAN}"));
    let mut largest: Vec<(&String, f64)> = exact.iter().map(|(stack, numbers)| (stack, numbers.0)).collect();
    largest.sort_by(|one, other| other.1.total_cmp(&one.1));
    largest.truncate(LARGEST);
    assert_eq!(largest.len(), LARGEST);
    assert!(exact.values().all(|numbers| numbers.1 == 0.0));

    let estimate = |stack| sampled.get(stack).copied().unwrap_or((0.0, 0.0));
    let mut told_apart = 0;
    for (place, (stack, bytes)) in largest.iter().enumerate() {
        let (about, error) = estimate(*stack);
        assert!((about - bytes).abs() <= tolerance(error), "{bytes} bytes, by samples {about} ± {error}: {stack}");
        for (other, smaller) in &largest[place + 1..] {
            let (below, other_error) = estimate(*other);
            if bytes - smaller > tolerance(error.hypot(other_error)) {
                assert!(about > below, "{about} is not above {below}: {stack} {other}");
                told_apart += 1;
            }
        }
    }
    let pairs = LARGEST * (LARGEST - 1) / 2;
    // Which sites a version of perl has, and how alike they are, differs.
    assert!(told_apart > pairs / 3, "of {pairs} pairs only {told_apart} differ enough to be told apart");
}
