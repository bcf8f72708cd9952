//! What of a profile is looked at.

use clap::Args;

use super::model::{Profile, What};

#[derive(Debug, Args)]
pub struct View {
    /// What sites are shown by; without it what is live, or if nothing is, what was live at the peak
    #[arg(long, value_enum, value_name = "WHAT")]
    by: Option<What>,

    /// The same as --by=peak: what was live when all together was most
    #[arg(long, conflicts_with = "by")]
    at_peak: bool,

    /// How many sites the table has
    #[arg(long, value_name = "NUMBER", default_value = "20")]
    pub top: usize,
}

impl View {
    pub fn by(&self, profile: &Profile) -> What {
        if self.at_peak {
            return What::Peak;
        }
        let has = |what: &What| profile.has(*what);
        let usual = || [What::Live, What::Peak, What::Allocated].into_iter().find(has).unwrap_or(What::Live);
        self.by.unwrap_or_else(usual)
    }
}
