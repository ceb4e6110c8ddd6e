"""What every operation does to memory and to the graph, as data."""

from tensafe.ops.op import Dtype as Dtype
from tensafe.ops.op import Gives as Gives
from tensafe.ops.op import LayerOp as LayerOp
from tensafe.ops.op import Op as Op
from tensafe.ops.op import Saves as Saves
from tensafe.ops.table import LAYERS as LAYERS
from tensafe.ops.table import OPS as OPS
from tensafe.ops.table import OUTPUT_KEPT_IN_PLACE as OUTPUT_KEPT_IN_PLACE
from tensafe.ops.table import TAKES_INPLACE as TAKES_INPLACE
from tensafe.ops.table import TENSOR_METHODS as TENSOR_METHODS
from tensafe.ops.table import WRITERS as WRITERS
from tensafe.ops.table import out_of_place as out_of_place
from tensafe.ops.words import words as words
