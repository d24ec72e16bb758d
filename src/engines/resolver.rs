//! From names to addresses, checked in the step that the connection uses.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::rules;

/// How names become addresses: the system's look-up, or a double of it in tests.
pub type LookUp = Arc<dyn Fn(String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Which addresses may be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Public,
    /// Also the machine that the server itself runs on, and no other private one.
    PublicOrLoopback,
    Loopback,
    /// Only in the sandbox, and only while the server itself is bound to loopback.
    Any,
}

impl Reach {
    /// Why the address must not be reached, if so.
    pub fn forbids(self, address: IpAddr) -> Option<&'static str> {
        let special = rules::forbidden(address);
        let is_loopback = special == Some("loopback");
        match self {
            Self::Any => None,
            Self::Public => special,
            Self::PublicOrLoopback => special.filter(|_| !is_loopback),
            Self::Loopback if is_loopback => None,
            Self::Loopback => Some(special.unwrap_or("not loopback")),
        }
    }
}

pub(super) fn system() -> LookUp {
    Arc::new(|name| Box::pin(system_look_up(name)))
}

async fn system_look_up(name: String) -> std::io::Result<Vec<IpAddr>> {
    Ok(tokio::net::lookup_host((name.as_str(), 0)).await?.map(|socket| socket.ip()).collect())
}

/// A host name has an address that must not be reached. One is enough to refuse the name.
#[derive(Debug, thiserror::Error)]
#[error("the name has an address that is not public ({0})")]
pub(super) struct ForbiddenName(pub &'static str);

impl ForbiddenName {
    /// The refusal among the causes of an error.
    pub fn among(error: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
        let mut cause = Some(error);
        while let Some(e) = cause {
            if let Some(Self(kind)) = e.downcast_ref() {
                return Some(kind);
            }
            cause = e.source();
        }
        None
    }
}

pub(super) async fn checked(look_up: &LookUp, name: &str, reach: Reach) -> Result<Vec<IpAddr>, Box<dyn std::error::Error + Send + Sync>> {
    let addresses = look_up(name.to_owned()).await?;
    if let Some(kind) = addresses.iter().find_map(|ip| reach.forbids(*ip)) {
        return Err(Box::new(ForbiddenName(kind)));
    }
    Ok(addresses)
}

/// Resolves and checks in one step, so that the connection goes to the addresses that were checked.
pub(super) struct CheckedResolver {
    pub reach: Reach,
    pub look_up: LookUp,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (reach, look_up) = (self.reach, self.look_up.clone());
        Box::pin(async move {
            let addresses = checked(&look_up, name.as_str(), reach).await?;
            Ok(Box::new(addresses.into_iter().map(|ip| SocketAddr::new(ip, 0))) as Addrs)
        })
    }
}
