"""The tour in Korean, for the readers of the guides."""

from __future__ import annotations

from typing import NamedTuple


class Text(NamedTuple):
    """What is said at one stop."""

    title: str
    says: str
    happens: str


TEXTS = {
    "slice-shares-memory": Text(
        "슬라이스는 메모리를 공유하고, clone()은 보호합니다",
        "슬라이스는 뷰입니다. clone하지 않으면 슬라이스에 쓴 값이 원본을 바꿉니다.",
        "슬라이스는 x의 스토리지를 들여다보고, clone은 자기 스토리지를 가집니다.",
    ),
    "index-copies": Text(
        "불리언 마스크와 정수 리스트 인덱싱은 복사합니다",
        "고급 인덱싱은 복사본을 주므로 거기에 써도 원본은 안전합니다.",
        "그런 인덱스에 in-place 메서드를 부르면 아무도 갖지 않는 복사본에 쓰게 됩니다. 대입은 "
        "원본에 도착합니다.",
    ),
    "array-for-a-plot": Text(
        "그래프용 배열: detach().cpu().clone().numpy()",
        "numpy() 전에 clone하지 않으면 그린 배열이 텐서와 함께 변합니다.",
        "CPU에서는 cpu()가 텐서 자신을, numpy()가 뷰를 줍니다. GPU에서 왔다면 cpu()가 이미 "
        "복사했으므로 clone은 필요 없는 두 번째 복사입니다.",
    ),
    "zero-a-slice": Text(
        "슬라이스의 zero_()는 아무것도 할당하지 않습니다",
        "슬라이스에 대한 in-place 연산은 메모리를 아낍니다.",
        "슬라이스는 파이썬 객체 몇 바이트일 뿐이고, 원소는 x의 것입니다.",
    ),
    "view-or-reshape": Text(
        "전치된 텐서에서 view()는 실패하고 reshape()는 복사합니다",
        "view()가 오류를 내면 reshape()를 쓰세요.",
        "전치된 원소를 순서대로 지나는 stride가 없어 reshape()는 복사했고, 그 결과에 쓴 값은 x에 "
        "도착하지 않습니다. 연속된 텐서에서는 같은 줄이 뷰가 됩니다.",
    ),
    "one-channel": Text(
        "채널 하나만: img[0].clone()",
        "이미지 없이 채널만 남기려면 clone하세요.",
        "채널 하나의 뷰가 세 채널 모두를 살려 둡니다.",
    ),
    "comparing-addresses": Text(
        "data_ptr()를 비교해 공유 여부 확인하기",
        "data_ptr()가 같으면 두 텐서는 메모리를 공유합니다.",
        "data_ptr()는 텐서가 시작하는 곳입니다. 다른 곳에서 시작하는 두 슬라이스도 서로 겹칠 수 있습니다.",
    ),
    "deepcopy-is-slow": Text(
        "텐서의 deepcopy는 느리다: clone().detach()로 대신하기",
        "큰 텐서에는 copy.deepcopy를 피하세요. x.clone().detach()가 더 빠릅니다.",
        "deepcopy의 비용은 원소가 아니라 객체마다, 그리고 새 페이지마다 듭니다. 큰 텐서 하나라면 "
        "clone과 같고, 작은 텐서 수천 개라면 파이썬 비용입니다. detach().clone()은 버려질 "
        "clone을 그래프에 기록하지 않고 같은 복사본을 줍니다.",
    ),
    "read-only": Text(
        "읽기 전용 뷰",
        "writeable 플래그를 끈 NumPy 뷰를 건네세요.",
        "이 플래그는 NumPy만 지킵니다. torch는 경고한 뒤 그대로 쓰며, 텐서에는 그런 플래그가 없습니다.",
    ),
    "copy-a-model": Text(
        "클래스와 state_dict()로 모델 복사하기",
        "new = type(model)(); new.load_state_dict(model.state_dict())",
        "인자 없는 생성자에서만 되고, 파라미터나 버퍼가 아닌 것은 남겨 둡니다.",
    ),
    "copy-of-a-part": Text(
        "텐서 일부를 복사하고 저장하고 pickle하기",
        "deepcopy는 슬라이스의 독립된 복사본을 줍니다.",
        "독립적이지만 전체만큼 큽니다. deepcopy, save, pickle은 스토리지를 통째로 가져가는데, 이 "
        "슬라이스는 그 1퍼센트입니다.",
    ),
    "share-across-processes": Text(
        "share_memory_()로 프로세스 사이에 공유하기",
        "share_memory_()를 부르고 복사 없이 다른 프로세스에 건네세요.",
        "스토리지는 통째로 공유되거나 전혀 공유되지 않습니다. 4,000바이트가 모두 공유 메모리로 "
        "갔고 받는 쪽은 그 전부에 닿습니다.",
    ),
    "pickle-protocol-5": Text(
        "큰 데이터에는 pickle 프로토콜 5",
        "프로토콜 5는 큰 버퍼를 복사 없이 따로 보냅니다.",
        "torch는 스토리지를 바이트 문자열 하나로 만들고 버퍼를 내놓지 않습니다. 모두 두 번 복사됩니다.",
    ),
    "own-deepcopy-method": Text(
        "무거운 멤버를 위한 __deepcopy__ 메서드",
        "__deepcopy__를 써서 새 객체를 만들고 무거운 것은 공유하거나 clone하세요.",
        "생성자를 부르는 메서드는 그 뒤에 바뀐 것을 잊고, 자신을 memo에 넣지 않는 메서드는 "
        "연결을 모두 잃습니다.",
    ),
    "what-writes-in-place": Text(
        "in-place 연산, zero_grad(), step()은 같은 객체에 씁니다",
        "_로 끝나는 메서드와 옵티마이저의 step은 텐서 자신을 바꿉니다.",
        "fused step은 autograd가 쓰기를 알아채는 버전 카운터를 지나쳐 썼습니다. 아직 q가 필요한 "
        "backward는 새 값을 쓰고도 아무 말이 없습니다.",
    ),
    "leaf-in-place": Text(
        "leaf에 대한 in-place는 오류, detach()를 먼저 하면 안전하다는 말",
        "in-place로 쓰기 전에 x.detach()를 쓰세요.",
        "detach()는 같은 메모리 위의 다른 텐서를 줍니다. 쓰기는 통과하고 원본이 바뀝니다.",
    ),
    "augmentation": Text(
        "clone()으로 미분 가능한 증강",
        "in-place로 쓰기 전에 clone하면 기울기가 그대로 흐릅니다.",
        "exp()는 backward를 위해 출력을 보관합니다. clone은 그래프 안에 있으면서 써도 되지만, "
        "출력 자체에는 쓰면 안 됩니다.",
    ),
    "modified-by-an-inplace-operation": Text(
        "one of the variables needed for gradient computation has been modified",
        "in-place 연산을 찾아 바꾸거나 clone하세요.",
        "이 오류는 쓴 줄도, anomaly mode 없이는 저장한 줄도 말해 주지 않습니다. `tensafe run`은 "
        "두 줄을 모두 말합니다.",
    ),
    "detach-cuts-clone-keeps": Text(
        "detach()는 그래프를 끊고 clone()은 유지합니다",
        "detach() 뒤에는 기울기가 None이고 clone() 뒤에는 도착합니다.",
        "두 말 모두 맞지만, 가이드의 첫 예제는 None을 출력하지 않고 오류를 냅니다. 되짚어 갈 "
        "그래프가 없기 때문입니다.",
    ),
    "output-to-numpy": Text(
        "output.detach().cpu().numpy()",
        "numpy() 전에 detach하세요.",
        "CPU에서 이 배열은 출력의 뷰입니다. 한쪽에 쓰면 다른 쪽도 바뀝니다.",
    ),
    "gan-discriminator": Text(
        "판별자에는 gen.detach()",
        "판별자 단계에서는 생성된 배치를 detach하세요.",
        "그러지 않으면 판별자의 단계마다 생성자까지 거슬러 올라가 기울기를 남기고, 생성자의 다음 "
        "단계가 거기에 자기 것을 더합니다.",
    ),
    "weight-history": Text(
        "clone().detach()로 가중치 기록 남기기",
        "가중치는 clone().detach()로 보관하세요.",
        'state_dict()만으로는 살아 있는 텐서입니다. "저장한" 가중치가 step과 함께 움직였습니다.',
    ),
}
